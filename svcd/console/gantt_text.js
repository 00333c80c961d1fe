// The words of a provision: its summary, a chosen bar, what failed, the longest path.
import { html } from "./html.js";
import { short } from "./gantt.js";
import { Lines, Name, Values } from "./parts.js";
import { stepTitle } from "./records.js";
import { count, plain } from "./text.js";
import { clock, duration, moment } from "./time.js";

const LEGEND = ["cloud", "wait", "machine", "files", "daemons", "failed", "longest path"];
const MOST = 5; // names of machines

const where = ({ machine, machines }) => (machines ? count(machines, "machine") : plain(machine) || "the cluster");
const nameOf = (bar) => plain(stepTitle(bar)) + (bar.machine ? ` on ${where(bar)}` : "");
export const barKey = (bar) => `${bar.machine}/${bar.step}/${bar.begin}`;
const attemptOf = (bar) => (bar.attempt ? `, attempt ${bar.attempt}` : "");

function resultOf({ open, outcome, machines, done }) {
  if (machines) return `${done} of ${machines} done`;
  return open ? "goes on" : plain(outcome);
}

const tookOf = ({ begin, end, open }) => duration(end - begin) + (open ? " so far" : "");

// All of a bar in one line.
export function barLabel(bar) {
  const result = resultOf(bar) + (bar.code ? ` ${plain(bar.code)}` : "");
  return `${nameOf(bar)}, ${tookOf(bar)}${attemptOf(bar)}, ${result}${bar.longest_path ? ", on the longest path" : ""}`;
}

// When a bar began, and when it ends.
function timeOf(bar) {
  const { begin, end, open, until } = bar;
  const last = open ? until && `, at most until ${clock(moment(until))}` : ` to ${clock(end)}`;
  return `${tookOf(bar)}, from ${clock(begin)}${last || ""}`;
}

const HELP = "Choose a bar for its details. Arrow keys move between bars.";

export function Detail({ bar }) {
  if (!bar) return html`<p class="detail faint">${HELP}</p>`;
  const rows = [
    ["Step", html`${plain(stepTitle(bar))} on <${Name}>${where(bar)}<//>${attemptOf(bar)}
      ${bar.longest_path && html` <span class="mark">longest path</span>`}`],
    ["Time", timeOf(bar)],
    ["Waited for", bar.waited_for && nameOf(bar.waited_for)],
    ["Result", html`
      ${resultOf(bar)}${" "}
      ${bar.code && html`<strong class="code">${plain(bar.code)}</strong>`}
      ${bar.text && html`<${Lines} text=${bar.text} />`}`],
  ];
  return html`<div class="detail"><${Values} rows=${rows} /></div>`;
}

// What failed in one line: the step, the machines, how often.
function failureOf(failure, cluster) {
  const { machines, times, outcome } = failure;
  const names = machines.slice(0, MOST).map((each) => plain(short(each, cluster))).join(", ");
  const others = machines.length > MOST ? ` and ${machines.length - MOST} more` : "";
  const at = names ? ` on ${names}${others}` : "";
  return `${plain(stepTitle(failure))}${at}${times > 1 ? `, ${times} times` : ""}${outcome === "retry" ? ", tried again" : ""}`;
}

export const Failures = ({ failures, cluster }) => html`<h3>What failed</h3>
  <ul class="failures">${failures.map((each) => html`
    <li key=${each.step + each.code + each.outcome}>
      <strong class="code">${plain(each.code || each.outcome)}</strong> <span>${failureOf(each, cluster)}</span>
      <${Lines} text=${each.text} />
    </li>`)}
  </ul>`;

export const Path = ({ path }) => html`
  <details>
    <summary>Longest path: ${count(path.length, "step")}, ${duration(path.at(-1).end - path[0].begin)}</summary>
    <ol class="steps">${path.map((each) => html`
      <li key=${barKey(each)}>
        <span>${nameOf(each)}</span><span class="amount">${duration(each.end - each.begin)}</span>
      </li>`)}
    </ol>
  </details>`;

export const Legend = () => html`
  <figcaption class="legend" aria-hidden="true">
    ${LEGEND.map((word) => html`<span key=${word}><i class=${word}></i>${word}</span>`)}
  </figcaption>`;

// A change in one line: how long it takes, and how many machines are done with the present status.
export function Summary({ change: { outcome, machines, phases }, settled, span }) {
  const having = (what) => machines.filter((each) => each[what]).length;
  const size = count(machines.length, "machine");
  const took = duration(span);
  return html`
    ${settled
      ? `${outcome === "failed" ? "Failed after" : "Took"} ${took}, ${size}`
      : `${plain(phases.at(-1)?.status ?? "Begun")}: ${having("done")} of ${size}, ${took} so far`}
    ${having("replaced") > 0 && html`, <strong class="code">${having("replaced")} replaced</strong>`}`;
}

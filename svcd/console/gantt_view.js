// Draws a provision: a row for each machine, a bar for each step and attempt.
import { useState } from "./hooks.js";
import { html } from "./html.js";
import { drawing, marks, short } from "./gantt.js";
import { Lines, Name } from "./parts.js";
import { stepTitle } from "./records.js";
import { count, plain } from "./text.js";
import { clock, duration, moment, now } from "./time.js";

const LEGEND = {
  cloud: "cloud",
  wait: "wait",
  machine: "machine",
  files: "files",
  daemons: "daemons",
  failed: "failed",
  longest: "longest path",
};
const LANE_PX = 24;
const MOST = 5; // names of machines

const where = (machine) => plain(machine) || "the cluster";
const nameOf = (bar) => plain(stepTitle(bar)) + (bar.machine ? ` on ${plain(bar.machine)}` : "");
const keyOf = (bar) => `${bar.machine}/${bar.step}/${bar.begin}`;
const attemptOf = (bar) => (bar.attempt ? `, attempt ${bar.attempt}` : "");

// All of a bar in one line.
function labelOf(bar) {
  const time = duration(bar.end - bar.begin) + (bar.open ? " so far" : "");
  const result = (bar.open ? "goes on" : bar.outcome) + (bar.code ? ` ${plain(bar.code)}` : "");
  return `${nameOf(bar)}, ${time}${attemptOf(bar)}, ${result}${bar.longest_path ? ", on the longest path" : ""}`;
}

function Bar({ bar, place, chosen, choose, first }) {
  const label = labelOf(bar);
  const style = { ...place(bar.begin, bar.end), top: `${bar.lane * LANE_PX + 3}px` };
  const isTrouble = bar.outcome === "failed" || bar.outcome === "retry";
  const look = `bar ${isTrouble ? bar.outcome : bar.kind} ${bar.longest_path ? "path" : ""} ${bar.open ? "open" : ""}`;
  return html`
    <button type="button" class=${look} style=${style} aria-label=${label} title=${label} aria-pressed=${chosen}
        tabindex=${chosen || first ? 0 : -1} onClick=${() => choose(bar)}>
      <span>${plain(bar.code || bar.step)}</span>
    </button>`;
}

// When a bar began, and when it ends.
function timeOf({ begin, end, open, until }) {
  if (!open) return `${duration(end - begin)}, from ${clock(begin)} to ${clock(end)}`;
  return `${duration(end - begin)} so far, from ${clock(begin)}${until ? `, at most until ${clock(moment(until))}` : ""}`;
}

const HELP = "Choose a bar to see what it is and what it waited for. Arrow keys move between bars.";

function Detail({ bar }) {
  if (!bar) return html`<p class="detail faint">${HELP}</p>`;
  return html`<dl class="detail">
    <dt>Step</dt>
    <dd>
      ${plain(stepTitle(bar))} on <${Name}>${where(bar.machine)}<//>${attemptOf(bar)}
      ${bar.longest_path && html` <span class="mark">longest path</span>`}
    </dd>
    <dt>Time</dt>
    <dd>${timeOf(bar)}</dd>
    <dt>Waited for</dt>
    <dd>${bar.waited_for ? nameOf(bar.waited_for) : html`<span class="faint">not known</span>`}</dd>
    <dt>Result</dt>
    <dd>
      ${bar.open ? "goes on" : plain(bar.outcome)}${" "}
      ${bar.code && html`<strong class="code">${plain(bar.code)}</strong>`}
      ${bar.text && html`<${Lines} text=${bar.text} />`}
    </dd>
  </dl>`;
}

// Arrow keys: along a row, and to the nearest bar of another row.
function move(event) {
  const from = event.target.closest(".bar");
  const turn = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
  if (!from || !turn) return;
  event.preventDefault();
  let next = null;
  if (turn[0]) {
    const bars = [...from.closest(".track").querySelectorAll(".bar")];
    next = bars[bars.indexOf(from) + turn[0]];
  } else {
    const all = [...event.currentTarget.querySelectorAll(".track")];
    const tracks = all.filter((each) => each.querySelector(".bar"));
    const track = tracks[tracks.indexOf(from.closest(".track")) + turn[1]];
    const far = (each) => Math.abs(each.offsetLeft - from.offsetLeft);
    const nearest = (best, each) => (far(each) < far(best) ? each : best);
    next = track && [...track.querySelectorAll(".bar")].reduce(nearest);
  }
  if (next) {
    next.focus();
    next.click();
  }
}

const Axis = ({ start, span }) => html`
  <div class="row axis">
    <span class="who"></span>
    <div class="track">${marks(span, 5).map((at) => html`
      <span class="tick" style=${{ left: `${(at / span) * 100}%` }}>${at ? `+${duration(at)}` : clock(start)}</span>`)}
    </div>
  </div>`;

const Phases = ({ phases, place }) => html`
  <div class="row phases">
    <span class="who">status</span>
    <div class="track">${phases.map(({ status, begin, end, failed }) => html`
      <span class=${`phase ${failed ? "failed" : ""}`} style=${place(begin, end)}
        title=${`${plain(status)}, ${duration(end - begin)}`}>${plain(status)}</span>`)}
    </div>
  </div>`;

// What failed in one line: the step, the machines, how often.
function failureOf(failure, cluster) {
  const { machines, times, outcome } = failure;
  const names = machines.slice(0, MOST).map((each) => plain(short(each, cluster))).join(", ");
  const others = machines.length > MOST ? ` and ${machines.length - MOST} more` : "";
  const at = names ? ` on ${names}${others}` : "";
  return `${plain(stepTitle(failure))}${at}${times > 1 ? `, ${times} times` : ""}${outcome === "retry" ? ", tried again" : ""}`;
}

const Failures = ({ failures, cluster }) => html`<h3>What failed</h3>
  <ul class="failures">${failures.map((each) => html`
    <li key=${each.step + each.code + each.outcome}>
      <strong class="code">${plain(each.code || each.outcome)}</strong> <span>${failureOf(each, cluster)}</span>
      <${Lines} text=${each.text} />
    </li>`)}
  </ul>`;

const Path = ({ path }) => html`
  <details>
    <summary>Longest path: ${count(path.length, "step")}, ${duration(path.at(-1).end - path[0].begin)}</summary>
    <ol class="steps">${path.map((each) => html`
      <li key=${keyOf(each)}>
        <span>${nameOf(each)}</span><span class="amount">${duration(each.end - each.begin)}</span>
      </li>`)}
    </ol>
  </details>`;

function Caption({ span, settled, rows, path }) {
  const steps = rows.reduce((sum, row) => sum + row.bars.length, 0);
  const machines = rows.filter((row) => row.machine).length;
  const time = `${duration(span)} ${settled ? "in all" : "so far"}`;
  const length = ({ begin, end }) => end - begin;
  const longest = path.reduce((best, each) => (best && length(best) >= length(each) ? best : each), null);
  return html`<figcaption>
    <span>${time}, ${count(steps, "step")} on ${count(machines, "machine")}.</span>
    ${longest && html`
      <span>The longest step: <strong>${nameOf(longest)}</strong>, ${duration(length(longest))}.</span>`}
    <span class="legend" aria-hidden="true">
      ${Object.entries(LEGEND).map(([kind, word]) => html`<span key=${kind}><i class=${kind}></i>${word}</span>`)}
    </span>
  </figcaption>`;
}

// change: its steps, of the story.
export function Gantt({ change, cluster }) {
  const [key, choose] = useState("");
  const { start, end, settled, rows, phases, path, faults } = drawing(change, now());
  const span = end - start;
  const part = (ms) => `${(ms / span) * 100}%`;
  const place = (from, to) => ({ left: part(from - start), width: part(to - from) });
  const chosen = rows.flatMap((row) => row.bars).find((bar) => keyOf(bar) === key);
  const draw = (bar, isFirst) => html`
    <${Bar} key=${keyOf(bar)} bar=${bar} place=${place} first=${!chosen && isFirst} chosen=${bar === chosen}
      choose=${(each) => choose(keyOf(each))} />`;
  return html`<figure class="gantt">
    <${Caption} span=${span} settled=${settled} rows=${rows} path=${path} />
    <div class="scroll">
      <div class="chart" onKeyDown=${move} role="group" aria-label="Steps by machine and time">
        <${Axis} start=${start} span=${span} />
        ${phases.length > 0 && html`<${Phases} phases=${phases} place=${place} />`}
        ${rows.map(({ machine, lanes, bars }, at) => html`
          <div class="row" key=${machine}>
            <span class="who" title=${where(machine)}><${Name}>${short(where(machine), cluster)}<//></span>
            <div class="track" style=${{ height: `${lanes * LANE_PX + 6}px` }}>
              ${bars.map((bar, n) => draw(bar, at + n === 0))}
            </div>
          </div>`)}
      </div>
    </div>
    <${Detail} bar=${chosen} />
    ${faults.length > 0 && html`<${Failures} failures=${faults} cluster=${cluster} />`}
    ${path.length > 1 && html`<${Path} path=${path} />`}
  </figure>`;
}

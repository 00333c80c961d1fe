// Draws a provision: a row for each machine, a bar for each step and attempt.
import { useRef, useState } from "./hooks.js";
import { html } from "./html.js";
import { drawing, marks, short } from "./gantt.js";
import { Lines, Name } from "./parts.js";
import { count, plain } from "./text.js";
import { clock, duration, now } from "./time.js";

const KINDS = [
  [/^(create|delete|attach|associate|release|remove)/, "cloud"],
  [/^wait/, "waits"],
  [/^(log in|prepare)/, "machine"],
  [/^(start|stop)/, "daemons"],
];
const LEGEND = [["cloud", "cloud"], ["waits", "wait"], ["machine", "machine"], ["files", "files"], ["daemons", "daemons"], ["failed", "failed"], ["longest", "longest path"]];
const kindOf = (bar) => (bar.outcome === "failed" ? "failed" : bar.outcome === "retry" ? "retry" : (KINDS.find(([words]) => words.test(bar.step)) ?? [0, "files"])[1]);
const where = (machine) => plain(machine) || "the cluster";
const nameOf = ({ step, machine }) => `${plain(step)}${machine ? ` on ${plain(machine)}` : ""}`;

function Bar({ bar, place, chosen, choose, first }) {
  const label = `${nameOf(bar)}, ${duration(bar.end - bar.begin)}${bar.open ? " so far" : ""}${bar.attempt ? `, attempt ${bar.attempt}` : ""}, ${bar.open ? "goes on" : bar.outcome}${bar.code ? ` ${plain(bar.code)}` : ""}${bar.path ? ", on the longest path" : ""}`;
  const style = { ...place(bar.begin, bar.end), top: `${bar.lane * 24 + 3}px` };
  return html`<button type="button" class=${`bar ${kindOf(bar)} ${bar.path ? "path" : ""} ${bar.open ? "open" : ""}`} style=${style}
    aria-label=${label} title=${label} aria-pressed=${chosen} tabindex=${chosen || first ? 0 : -1} onClick=${() => choose(bar)}><span>${plain(bar.code || bar.step)}</span></button>`;
}

function Detail({ bar }) {
  if (!bar) return html`<p class="detail faint">Choose a bar to see what it is and what it waited for. Arrow keys move between bars.</p>`;
  return html`<dl class="detail">
    <dt>Step</dt><dd>${plain(bar.step)} on <${Name}>${where(bar.machine)}<//>${bar.attempt ? `, attempt ${bar.attempt}` : ""}${bar.path ? html` <span class="mark">longest path</span>` : ""}</dd>
    <dt>Time</dt><dd>${duration(bar.end - bar.begin)}${bar.open ? " so far" : ""}, from ${clock(bar.begin)}${bar.open ? "" : ` to ${clock(bar.end)}`}${bar.open && bar.until ? `, at most until ${clock(bar.until)}` : ""}</dd>
    <dt>Waited for</dt><dd>${bar.waitedFor ? nameOf(bar.waitedFor) : html`<span class="faint">not known</span>`}</dd>
    <dt>Result</dt><dd>${bar.open ? "goes on" : plain(bar.outcome)} ${bar.code && html`<strong class="code">${plain(bar.code)}</strong>`}${bar.text && html`<${Lines} text=${bar.text} />`}</dd>
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
    const tracks = [...event.currentTarget.querySelectorAll(".track")].filter((each) => each.querySelector(".bar"));
    const track = tracks[tracks.indexOf(from.closest(".track")) + turn[1]];
    const far = (each) => Math.abs(each.offsetLeft - from.offsetLeft);
    next = track && [...track.querySelectorAll(".bar")].reduce((best, each) => (far(each) < far(best) ? each : best));
  }
  if (next) {
    next.focus();
    next.click();
  }
}

export function Gantt({ events, generation, cluster }) {
  const [key, choose] = useState("");
  const chart = useRef(null);
  const drawn = drawing(events, generation, now());
  if (!drawn) return null;
  const { start, end, rows, phases, path, failures } = drawn;
  const span = end - start;
  const place = (from, to) => ({ left: `${((from - start) / span) * 100}%`, width: `${((to - from) / span) * 100}%` });
  const keyOf = (bar) => `${bar.machine}/${bar.step}/${bar.begin}`;
  const all = rows.flatMap((row) => row.bars);
  const chosen = all.find((bar) => keyOf(bar) === key);
  const longest = path.reduce((best, each) => (best && best.end - best.begin >= each.end - each.begin ? best : each), null);
  return html`<figure class="gantt">
    <figcaption>
      <span>${duration(span)} ${drawn.settled ? "in all" : "so far"}, ${count(all.length, "step")} on ${count(rows.filter((row) => row.machine).length, "machine")}.</span>
      ${longest && html`<span>The longest step: <strong>${nameOf(longest)}</strong>, ${duration(longest.end - longest.begin)}.</span>`}
      <span class="legend" aria-hidden="true">${LEGEND.map(([kind, word]) => html`<span key=${kind}><i class=${kind}></i>${word}</span>`)}</span>
    </figcaption>
    <div class="scroll"><div class="chart" ref=${chart} onKeyDown=${move} role="group" aria-label="Steps by machine and time">
      <div class="row axis"><span class="who"></span><div class="track">${marks(span, 5).map((at) => html`<span class="tick" style=${{ left: `${(at / span) * 100}%` }}>${at ? `+${duration(at)}` : clock(start)}</span>`)}</div></div>
      ${phases.length > 0 && html`<div class="row phases"><span class="who">status</span><div class="track">${phases.map((each) => html`<span class=${`phase ${each.failed ? "failed" : ""}`} style=${place(each.begin, each.end)} title=${`${each.step}, ${duration(each.end - each.begin)}`}>${plain(each.step)}</span>`)}</div></div>`}
      ${rows.map((row, at) => html`<div class="row" key=${row.machine}>
        <span class="who" title=${where(row.machine)}><${Name}>${short(where(row.machine), cluster)}<//></span>
        <div class="track" style=${{ height: `${row.lanes * 24 + 6}px` }}>${row.bars.map((bar, n) => html`<${Bar} key=${keyOf(bar)} bar=${bar} place=${place} first=${!chosen && at === 0 && n === 0} chosen=${bar === chosen} choose=${(each) => choose(keyOf(each))} />`)}</div>
      </div>`)}
    </div></div>
    <${Detail} bar=${chosen} />
    ${failures.length > 0 && html`<h3>What failed</h3><ul class="failures">${failures.map((each) => html`<li key=${each.step + each.code + each.outcome}>
      <strong class="code">${plain(each.code || each.outcome)}</strong> <span>${plain(each.step)}${each.machines.length > 0 ? ` on ${each.machines.slice(0, 5).map((machine) => plain(short(machine, cluster))).join(", ")}${each.machines.length > 5 ? ` and ${each.machines.length - 5} more` : ""}` : ""}${each.times > 1 ? `, ${each.times} times` : ""}${each.outcome === "retry" ? ", tried again" : ""}</span><${Lines} text=${each.text} /></li>`)}</ul>`}
    ${path.length > 1 && html`<details><summary>Longest path: ${count(path.length, "step")}, ${duration(path.at(-1).end - path[0].begin)}</summary>
      <ol class="steps">${path.map((each) => html`<li key=${keyOf(each)}><span>${nameOf(each)}</span><span class="amount">${duration(each.end - each.begin)}</span></li>`)}</ol></details>`}
  </figure>`;
}

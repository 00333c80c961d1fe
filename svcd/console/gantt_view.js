// Draws a provision: a row for each machine or for alike ones, a bar for each step and attempt.
import { useRef, useState } from "./hooks.js";
import { html } from "./html.js";
import { drawing, folded, isTrouble, marks, short } from "./gantt.js";
import { barKey, barLabel, Detail, Failures, Legend, Path, Summary } from "./gantt_text.js";
import { Name } from "./parts.js";
import { plain } from "./text.js";
import { clock, duration, now } from "./time.js";

const LANE_PX = 24;

function Bar({ bar, place, chosen, choose, first }) {
  const label = barLabel(bar);
  const style = { ...place(bar.begin, bar.end), top: `${bar.lane * LANE_PX + 3}px` };
  const look = `bar ${isTrouble(bar) ? bar.outcome : bar.kind} ${bar.longest_path ? "path" : ""} ${bar.open ? "open" : ""}`;
  return html`
    <button type="button" class=${look} style=${style} aria-label=${label} title=${label} aria-pressed=${chosen}
        tabindex=${chosen || first ? 0 : -1} onClick=${() => choose(bar)}>
      <span>${plain(bar.code || (bar.outcome === "replaced" ? "replaced" : bar.step))}</span>
    </button>`;
}

const TURNS = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -1, ArrowDown: 1 };

// Arrow keys: along a row, and to the nearest bar of another row.
function move(event) {
  const from = event.target.closest(".bar");
  const turn = TURNS[event.key];
  if (!from || !turn) return;
  event.preventDefault();
  let next = turn < 0 ? from.previousElementSibling : from.nextElementSibling;
  if (/[UD]/.test(event.key)) {
    const bars = [...event.currentTarget.querySelectorAll(".bar")];
    if (turn < 0) bars.reverse();
    const others = bars.slice(bars.indexOf(from)).find((bar) => bar.parentElement !== from.parentElement);
    const far = (bar) => Math.abs(bar.offsetLeft - from.offsetLeft);
    const nearest = (best, bar) => (far(bar) < far(best) ? bar : best);
    next = others && [...others.parentElement.children].reduce(nearest);
  }
  next?.focus();
  next?.click();
}

const Axis = ({ start, span, most }) => html`
  <div class="row axis">
    <span class="who"></span>
    <div class="track">${marks(span, most).map((at) => html`
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

// The heading of a row. A row of alike machines shows each of them on demand.
function Who({ row: { machine, alike, group, done }, cluster, open, unfold }) {
  if (!alike) {
    const name = plain(machine) || "the cluster";
    return html`<span class="who" title=${name}><${Name}>${short(name, cluster)}<//></span>`;
  }
  const all = alike.length;
  return html`<button type="button" class="who" aria-expanded=${open} onClick=${unfold}>
    <${Name}>${group}<//>: ${all} alike${done < all && html`<br />${done} of ${all} done`}
  </button>`;
}

function Rows({ rows, cluster, place, chosen, choose }) {
  const [open, setOpen] = useState([]);
  const turn = (key) => setOpen(open.includes(key) ? open.filter((each) => each !== key) : [...open, key]);
  const shown = rows.flatMap((row) => (row.alike && open.includes(row.machine) ? [row, ...row.alike] : [row]));
  return shown.map((row, at) => html`
    <div class="row" key=${row.machine}>
      <${Who} row=${row} cluster=${cluster} open=${open.includes(row.machine)} unfold=${() => turn(row.machine)} />
      <div class="track" style=${{ height: `${row.lanes * LANE_PX + 6}px` }}>
        ${row.bars.map((bar, n) => html`
          <${Bar} key=${barKey(bar)} bar=${bar} place=${place} first=${at + n === 0}
            chosen=${bar === chosen} choose=${choose} />`)}
      </div>
    </div>`);
}

// What is drawn, as wide as the page or 2 ** zoom times as wide; its middle stays where it is.
function Chart({ start, span, phases, children }) {
  const box = useRef(null);
  const [zoom, setZoom] = useState(0);
  const part = (ms) => `${(ms / span) * 100}%`;
  const place = (from, to) => ({ left: part(from - start), width: part(to - from) });
  const change = ({ target }) => {
    const seen = box.current;
    const half = seen.clientWidth / 2;
    const middle = (seen.scrollLeft + half) / seen.scrollWidth;
    setZoom(target.value);
    requestAnimationFrame(() => (seen.scrollLeft = middle * seen.scrollWidth - half));
  };
  return html`
    <label class="zoom">Zoom <input type="range" max="5" step="0.5" value=${zoom} onInput=${change} /></label>
    <div class="scroll" ref=${box}>
      <div class="chart" onKeyDown=${move} role="group" aria-label="Steps by machine and time"
          style=${{ width: `calc(max(100%, 640px) * ${2 ** zoom})` }}>
        <${Axis} start=${start} span=${span} most=${5 * 2 ** zoom} />
        ${phases.length > 0 && html`<${Phases} phases=${phases} place=${place} />`}
        ${children(place)}
      </div>
    </div>`;
}

// change: its steps, of the story. asked: a person has chosen it.
export function Gantt({ change, cluster, asked }) {
  const [key, choose] = useState("");
  const [wish, setWish] = useState(null);
  const { start, end, settled, rows, phases, path } = drawing(change, now());
  const { faults, outcome } = change;
  const open = wish ?? (!settled || outcome === "failed" || asked);
  const span = end - start;
  const shown = folded(rows);
  const chosen = [...shown, ...rows].flatMap((row) => row.bars).find((bar) => barKey(bar) === key);
  const turn = (event) => {
    event.preventDefault();
    setWish(!open);
  };
  return html`<figure class="gantt"><details open=${open}>
    <summary onClick=${turn}><${Summary} change=${change} settled=${settled} span=${span} /></summary>
    ${open && html`<div onfocusin=${() => setWish(true)}>
      <${Legend} />
      <${Chart} start=${start} span=${span} phases=${phases}>
        ${(place) => html`<${Rows} rows=${shown} cluster=${cluster} place=${place} chosen=${chosen}
          choose=${(bar) => choose(barKey(bar))} />`}
      <//>
      <${Detail} bar=${chosen} />
      ${faults.length > 0 && html`<${Failures} failures=${faults} cluster=${cluster} />`}
      ${path.length > 1 && html`<${Path} path=${path} />`}
    </div>`}
  </details></figure>`;
}

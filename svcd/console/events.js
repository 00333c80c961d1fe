// The events of everything: what happens to clusters, and when runs begin and end. Newest first.
import { useEffect, useRef, useState } from "./hooks.js";
import { html } from "./html.js";
import { Check, Filter, Filters, Found, Head, Lines, Link, Name, Search, State, Time, useTick } from "./parts.js";
import { clusterChoices, jobName, outcome, stepTitle } from "./records.js";
import { filter } from "./route.js";
import { openAll, store, useStore } from "./store.js";
import { plain } from "./text.js";
import { duration, moment, now } from "./time.js";

const MOST = 300; // events of a cluster
const ROWS = 500;
const CLUSTERS = 100; // whose events are read at once; the button reads those of more
const PAUSE_MS = 200; // between drawings of a long list
const KINDS = [["", "everything"], ["clusters", "clusters"], ["runs", "runs"]];
const FAILED = ["failed", "retry", "Error", "Failed", "Killed"];

export const RANGES = [["", "all"], ["1", "the last hour"], ["24", "the last day"]];

const known = new WeakMap(); // the events of a cluster, or a run as it was -> its rows

// Begin and end as one row, the newest last. events: of one cluster, oldest first.
export function merged(events) {
  const rows = new Map();
  let phase; // the row of the present status
  for (const event of events) {
    const { kind, step, machine, began, ended, number, at, outcome } = event;
    const row = { ...event, key: began ? `${step} ${machine} ${began}` : number, open: began && !ended };
    if (kind === "status" && outcome !== "waiting") {
      for (const each of rows.values()) each.open = false; // also of steps that were interrupted
      if (phase) Object.assign(phase, { ended: at, at, number, outcome: "done" });
      if (phase && outcome === "failed") Object.assign(row, { key: phase.key, began: phase.began, ended: at });
      phase = outcome === "started" && Object.assign(row, { began: at, open: true });
    }
    if (row.ended || !rows.get(row.key)?.ended) rows.set(row.key, row);
  }
  return [...rows.values()].sort((a, b) => (a.at > b.at) - (a.at < b.at) || a.number - b.number);
}

// The rows of a cluster. events: by key.
export function rowsOf(events) {
  const all = [...events.values()];
  const last = all.at(-1);
  if (known.get(events)?.last !== last) known.set(events, { last, rows: merged(all) });
  return known.get(events)?.rows ?? [];
}

function rowOf(run) {
  if (!known.has(run)) {
    const { id, created_at: began, start_time: start, end_time: ended, cluster_id } = run;
    const at = ended ?? start ?? began;
    const ms = Math.max(moment(began), moment(at)); // the other times have whole seconds
    const end = { ended, open: !ended, outcome: outcome(run), ...run.info?.failure, step: "" };
    known.set(run, { key: id, number: 0, at, ms, began, run, cluster_id, ...end });
  }
  return known.get(run);
}

// The words of an event that a person finds it by.
export function wordsOf(event) {
  const { machine, outcome: word, code, text, run, cluster_id: id } = event;
  const names = `${store.job.get(run?.job_id)?.name} ${store.cluster.get(id)?.name}`;
  return `${stepTitle(event)} ${machine} ${word} ${code} ${text} ${names}`.toLowerCase();
}

// All rows that pass the filters, newest first. A row keeps its time as a number once that was needed.
export function passing({ cluster, kind, failed, q = "", time, from, to }) {
  const text = q.toLowerCase();
  const hours = Number(time);
  const least = hours ? now() - hours * 3_600_000 : (moment(from) ?? 0);
  const most = (!hours && moment(to)) || Infinity;
  const found = [];
  const add = (row) => {
    if ((failed && !FAILED.includes(row.outcome)) || (cluster && cluster !== row.cluster_id)) return;
    row.ms ??= moment(row.at) ?? 0;
    if (row.ms < least && !row.open) return;
    if (row.ms > most && (moment(row.began) ?? row.ms) > most) return;
    if (!text || wordsOf(row).includes(text)) found.push(row);
  };
  if (kind !== "runs") {
    for (const [id, events] of store.events) {
      for (const row of rowsOf(events).slice(-MOST)) {
        row.cluster_id = id;
        add(row);
      }
    }
  }
  if (kind !== "clusters") for (const run of store.job_execution.values()) add(rowOf(run));
  return found.sort((a, b) => b.ms - a.ms || b.number - a.number);
}

const lengthOf = ({ began, ended, open }) =>
  (ended || open) && `${duration((ended ? moment(ended) : now()) - moment(began))}${open ? " so far" : ""}`;

// here: on the page of its cluster.
export function Row({ event, here }) {
  const { at, open, outcome, run, cluster_id: id, machine, code, text } = event;
  return html`<li>
    <span class="faint"><${Time} at=${at} /></span>
    <${State} word=${open && outcome === "started" ? "running" : outcome} />
    <span>
      ${run && html`<${Link} view="runs" id=${run.id} name=${jobName(store.job, run)} /> on `}
      ${!here && html`<${Link} view="clusters" ...${store.cluster.get(id)} /> `}
      <strong>${plain(stepTitle(event))}</strong>
      ${machine && html` on <${Name}>${machine}<//>`}${" "}
      <span class="faint">${lengthOf(event)}</span>${" "}
      ${code && html`<strong class="code">${plain(code)}</strong>`}
      ${text && html`<${Lines} text=${text} />`}
    </span>
  </li>`;
}

// The events that pass, and the rows of the newest. A long list is not drawn anew at each change.
function usePassing(query) {
  const [, again] = useState(0);
  const own = useRef({}).current;
  const filters = JSON.stringify(query);
  if (own.filters !== filters || own.found.length <= ROWS || performance.now() - own.at > PAUSE_MS) {
    const found = passing(query);
    const rows = found.slice(0, ROWS).map((event) => html`
      <${Row} key=${`${event.cluster_id} ${event.key}`} event=${event} />`);
    Object.assign(own, { filters, found, rows, at: performance.now() });
  } else own.timer ??= setTimeout(() => {
    own.timer = null;
    again((n) => n + 1);
  }, PAUSE_MS);
  return own;
}

export function Events({ query }) {
  useStore();
  const [most, more] = useState(CLUSTERS);
  const last = (each) => each.updated_at ?? each.created_at;
  const changed = [...store.cluster.values()].sort((a, b) => (last(a) < last(b)) - (last(a) > last(b)));
  const ids = query.cluster ? [query.cluster] : changed.slice(0, most).map((each) => each.id);
  useEffect(() => {
    openAll(ids.filter((id) => !store.events.has(id)));
  }, [ids.join()]);
  useTick();
  const { found, rows } = usePassing(query);
  const { time, from, to } = query;
  const given = time || !(from || to) ? [] : [["given", `${from ?? "…"} to ${to ?? "…"}`]]; // by a link
  return html`<${Head} title="Events" number=${found.length} />
    <${Filters}>
      <${Search} text="Find in events" of="q" query=${query} />
      <${Filter} label="Of" of="kind" query=${query} rows=${KINDS} />
      <${Filter} label="Time" of="time" query=${{ time: given[0]?.[0] ?? time }} rows=${[...RANGES, ...given]} />
      <${Filter} label="Cluster" of="cluster" query=${query} rows=${clusterChoices(store.cluster)} />
      <${Check} text="Failures only" on=${Boolean(query.failed)} change=${(on) => filter({ failed: on && "1" }, true)} />
    <//>
    <${Found} one="event" number=${found.length} most=${ROWS}><ol class="events all">${rows}</ol><//>
    ${!query.cluster && most < changed.length && html`<p class="faint">
      Of the ${most} clusters that changed last.${" "}
      <button type="button" class="small" onClick=${() => more(most + CLUSTERS)}>Read more</button>
    </p>`}`;
}

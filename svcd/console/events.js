// The events of everything: what happens to clusters, and when runs begin and end. Newest first.
import { useEffect, useRef, useState } from "./hooks.js";
import { html } from "./html.js";
import { Empty, Filter, Lines, Link, Name, Search, State, Time, useTick, useTitle } from "./parts.js";
import { clusterChoices, jobName, outcome, stepTitle } from "./records.js";
import { filter } from "./route.js";
import { openAll, store, useStore } from "./store.js";
import { plain } from "./text.js";
import { moment } from "./time.js";

const MOST = 300; // events of a cluster
const ROWS = 500;
const CLUSTERS = 100; // whose events are read at once; the button reads those of more
const PAUSE_MS = 200; // between drawings of a long list
const KINDS = [["", "everything"], ["clusters", "clusters"], ["runs", "runs"]];
const FAILED = ["failed", "retry", "Error", "Failed", "Killed"];

const derived = new WeakMap(); // a run as it was -> its events

function eventsOf(run) {
  if (!derived.has(run)) {
    const end = { ...run.info?.failure, step: "" };
    const marks = [["accepted", run.created_at], ["started", run.start_time], [outcome(run), run.end_time, end]];
    const begin = moment(run.created_at); // the other times have whole seconds
    const draw = ([word, at, more], number) => ({
      key: run.id + word,
      number,
      at,
      ms: Math.max(begin, moment(at)),
      outcome: word,
      run,
      cluster_id: run.cluster_id,
      ...more,
    });
    derived.set(run, marks.filter(([, at]) => at).map(draw));
  }
  return derived.get(run);
}

// The words of an event that a person finds it by.
function wordsOf(event, clusterId) {
  const { machine, outcome: word, code, text, run } = event;
  const names = `${store.job.get(run?.job_id)?.name} ${store.cluster.get(clusterId)?.name}`;
  return `${stepTitle(event)} ${machine} ${word} ${code} ${text} ${names}`.toLowerCase();
}

// All events that pass the filters, newest first. An event keeps its time as a number once that was needed.
export function passing({ cluster, kind, failed, q = "" }) {
  const text = q.toLowerCase();
  const found = [];
  const add = (each, id) => {
    if ((failed && !FAILED.includes(each.outcome)) || (cluster && cluster !== id)) return;
    if (text && !wordsOf(each, id).includes(text)) return;
    each.ms ??= moment(each.at) ?? 0;
    each.cluster_id ??= id;
    found.push(each);
  };
  if (kind !== "runs") {
    for (const [id, events] of store.events) for (const each of [...events.values()].slice(-MOST)) add(each, id);
  }
  if (kind !== "clusters") {
    for (const run of store.job_execution.values()) for (const each of eventsOf(run)) add(each, run.cluster_id);
  }
  return found.sort((a, b) => b.ms - a.ms || b.number - a.number);
}

// What happened: the step, its machine, the code and the text of a failure.
export const EventText = ({ event }) => html`
  <strong>${plain(stepTitle(event))}</strong>
  ${event.machine && html` on <${Name}>${event.machine}<//>`}${" "}
  ${event.code && html`<strong class="code">${plain(event.code)}</strong>`}
  ${event.text && html`<${Lines} text=${event.text} />`}`;

function Row({ event }) {
  const { at, outcome: word, run, cluster_id: id } = event;
  const cluster = store.cluster.get(id)?.name;
  return html`<li>
    <span class="faint"><${Time} at=${at} /></span>
    <${State} word=${word} />
    <span>
      ${run && html`<${Link} view="runs" id=${run.id} name=${jobName(store.job, run)} /> on `}
      ${cluster
        ? html`<${Link} view="clusters" id=${id} name=${cluster} />`
        : html`<span class="faint">a deleted cluster</span>`}${" "}
      <${EventText} event=${event} />
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
    const keyOf = (event) => event.key ?? `${event.cluster_id} ${event.number}`;
    const rows = found.slice(0, ROWS).map((event) => html`<${Row} key=${keyOf(event)} event=${event} />`);
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
  useTick(30_000);
  useTitle("Events");
  const { found, rows } = usePassing(query);
  const valueOf = ({ type, checked, value }) => (type === "checkbox" ? checked && "1" : value);
  const choose = (name) => ({ target }) => filter({ [name]: valueOf(target) }, true);
  return html`<header class="title"><h1>Events <span class="number">${found.length}</span></h1></header>
    <form class="filters" onSubmit=${(e) => e.preventDefault()}>
      <${Search} text="Find in events" of="q" query=${query} />
      <${Filter} label="Of" value=${query.kind} rows=${KINDS} choose=${choose("kind")} />
      <${Filter} label="Cluster" value=${query.cluster} rows=${clusterChoices(store.cluster)}
        choose=${choose("cluster")} />
      <label class="check">
        <input type="checkbox" checked=${Boolean(query.failed)} onChange=${choose("failed")} /> Failures only
      </label>
    </form>
    ${found.length ? html`<ol class="events all">${rows}</ol>` : html`<${Empty} title="No event fits the filters" />`}
    ${found.length > ROWS && html`<p class="faint">The newest ${ROWS} of ${found.length}: a filter finds others.</p>`}
    ${!query.cluster && most < changed.length && html`<p class="faint">
      Of the ${most} clusters that changed last.${" "}
      <button type="button" class="small" onClick=${() => more(most + CLUSTERS)}>Read more</button>
    </p>`}`;
}

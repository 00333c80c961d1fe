// The runs of all jobs: a row for each job, a bar for each run, as tall as it was long.
import { html } from "./html.js";
import { newRun } from "./commands.js";
import { Command, Empty, Filter, Name, State, Table, Time, tone, useTick, useTitle } from "./parts.js";
import { clusterChoices, hasEnded, length, newestFirst, outcome, status } from "./records.js";
import { filter, to } from "./route.js";
import { useStore } from "./store.js";
import { plain } from "./text.js";
import { duration, full, moment, now } from "./time.js";

const BARS = 40; // runs of a job in the grid
const ROWS = 100; // runs in the table
const JOBS = 50;
const STATUSES = ["failed", "Pending", "PREP", "RUNNING", "SUSPENDED", "SUCCEEDED", "KILLED", "FAILED"];

function Grid({ runs, jobs }) {
  const byJob = Map.groupBy ? Map.groupBy(runs, (run) => run.job_id) : grouped(runs);
  return html`<div class="grid">${[...byJob].slice(0, JOBS).map(([id, own]) => {
    const shown = own.slice(0, BARS).reverse();
    const lengths = shown.map((run) => length(run, now()));
    const longest = Math.max(1, ...lengths);
    return html`<div class="row" key=${id}><span class="who"><${Name}>${jobs.get(id)?.name ?? "deleted job"}<//><span class="faint">${plain(jobs.get(id)?.type ?? "")}</span></span>
      <div class="runs">${shown.map((run, at) => {
        const label = `${status(run)}, ${full(moment(run.created_at))}, ${duration(lengths[at])}`;
        return html`<a key=${run.id} class=${`run ${tone(outcome(run))}`} href=${to(["runs", run.id])} title=${label} aria-label=${label}><i style=${{ height: `${Math.max(12, (lengths[at] / longest) * 100)}%` }}></i></a>`;
      })}</div></div>`;
  })}</div><p class="faint">Newest at the right. The height is the duration, within a job.</p>`;
}

function grouped(runs) {
  const found = new Map();
  for (const run of runs) found.set(run.job_id, [...(found.get(run.job_id) ?? []), run]);
  return found;
}

export function Runs({ query }) {
  const { job_execution: executions, job: jobs, cluster: clusters } = useStore();
  const all = newestFirst(executions.values());
  const wanted = (query.q ?? "").toLowerCase();
  const runs = all.filter((run) =>
    (!query.status || (query.status === "failed" ? outcome(run) === "FAILED" : status(run) === query.status)) && (!query.cluster || run.cluster_id === query.cluster) &&
    (!wanted || (jobs.get(run.job_id)?.name ?? "").toLowerCase().includes(wanted)));
  useTick(runs.some((run) => !hasEnded(run)) ? 1000 : 30_000);
  useTitle("Runs");
  const choose = (name) => (e) => filter({ [name]: e.target.value }, true);
  return html`<header class="title"><h1>Runs <span class="number">${runs.length}</span></h1></header>
    ${!all.length ? html`<${Empty} title="No job has run yet"><p>Run <a href=${to(["jobs"])}>one of the jobs</a>, or start one with the command line.</p><${Command} text=${newRun} /><//>` : html`
    <form class="filters" onSubmit=${(e) => e.preventDefault()}>
      <input type="search" placeholder="Find a job" aria-label="Find a job by name" value=${query.q ?? ""} onInput=${(e) => filter({ q: e.target.value })} />
      <${Filter} label="Status" value=${query.status} rows=${[["", "all"], ...STATUSES.map((each) => [each, each === "failed" ? "failed, by any cause" : each])]} choose=${choose("status")} />
      <${Filter} label="Cluster" value=${query.cluster} rows=${clusterChoices(clusters)} choose=${choose("cluster")} />
    </form>
    ${!runs.length ? html`<${Empty} title="No run fits the filters"><p><a href=${to(["runs"])}>Show all runs</a></p><//>` : html`
    <${Grid} runs=${runs} jobs=${jobs} />
    <${Table} columns=${{ Job: "", Status: "", Started: "", Duration: "wide amount", Cluster: "wide" }}>
      ${runs.slice(0, ROWS).map((run) => html`<tr key=${run.id}><th scope="row"><a href=${to(["runs", run.id])}><${Name}>${jobs.get(run.job_id)?.name ?? "deleted job"}<//></a></th>
        <td><${State} word=${status(run)} of=${outcome(run)} /></td><td><${Time} at=${run.created_at} /></td><td class="wide amount">${duration(length(run, now()))}</td>
        <td class="wide">${clusters.has(run.cluster_id) ? html`<a href=${to(["clusters", run.cluster_id])}><${Name}>${clusters.get(run.cluster_id).name}<//></a>` : html`<span class="faint">gone</span>`}</td></tr>`)}<//>
    ${runs.length > ROWS && html`<p class="faint">The newest ${ROWS} of ${runs.length}.</p>`}`}`}`;
}

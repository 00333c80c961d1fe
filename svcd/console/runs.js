// The runs of all jobs: a row for each job, a bar for each run, as tall as it was long.
import { html } from "./html.js";
import { newRun } from "./commands.js";
import { RANGES } from "./events.js";
import { Command, Empty, Filter, Filters, Found, Head, Name, Search, tone, useTick } from "./parts.js";
import {
  clusterChoices,
  hasEnded,
  hasFailed,
  isWithin,
  jobName,
  length,
  newestFirst,
  outcome,
  status,
} from "./records.js";
import { to } from "./route.js";
import { RunTable } from "./run_table.js";
import { useStore } from "./store.js";
import { plain } from "./text.js";
import { duration, full, moment, now } from "./time.js";

const BARS = 40; // runs of a job in the grid
const ROWS = 100; // runs in the table
const JOBS = 50;
const WORDS = ["Failed", "Pending", "Preparing", "Running", "Suspended", "Succeeded", "Cancelled", "Killed"];
const CHOICES = { "": "all", ...Object.fromEntries(WORDS.map((word) => [word.toLowerCase(), word])) };

// The runs of one job, oldest first.
function Bars({ runs }) {
  const lengths = runs.map((run) => length(run, now()));
  const longest = Math.max(1, ...lengths);
  return html`<div class="runs">${runs.map((run, at) => {
    const label = `${outcome(run)}, ${full(moment(run.created_at))}, ${duration(lengths[at])}`;
    const height = `${Math.max(12, (lengths[at] / longest) * 100)}%`;
    return html`
      <a key=${run.id} class=${`run ${tone(outcome(run))}`} href=${to(["runs", run.id])} title=${label} aria-label=${label}>
        <i style=${{ height }}></i>
      </a>`;
  })}</div>`;
}

function Grid({ runs, jobs }) {
  return html`
    <div class="grid">${[...Map.groupBy(runs, (run) => run.job_id)].slice(0, JOBS).map(([id, own]) => html`
      <div class="row" key=${id}>
        <span class="who">
          <${Name}>${jobName(jobs, own[0])}<//><span class="faint">${plain(jobs.get(id)?.type ?? "")}</span>
        </span>
        <${Bars} runs=${own.slice(0, BARS).reverse()} />
      </div>`)}
    </div>
    <p class="faint">
      Newest at the right. The height is the duration, within a job. Thick top: failed; hollow: cancelled; striped: goes on.
    </p>`;
}

// Whether a run passes the filters of the view.
function passes(run, jobs, { status: word, hours, cluster, q = "" }) {
  const isWord = word === "failed" ? hasFailed(run) : [status(run), outcome(run).toLowerCase()].includes(word);
  if ((word && !isWord) || (cluster && run.cluster_id !== cluster)) return false;
  if (hours && !isWithin(run, hours, now())) return false;
  const text = q.toLowerCase();
  return !q || run.id.startsWith(text) || (jobs.get(run.job_id)?.name ?? "").toLowerCase().includes(text);
}

const List = ({ runs, jobs }) => html`
  <${Found} one="run" number=${runs.length} most=${ROWS}>
    <${Grid} runs=${runs} jobs=${jobs} />
    <${RunTable} runs=${runs.slice(0, ROWS)} />
  <//>`;

const None = () => html`
  <${Empty} title="No job has run yet">
    <p><a href=${to(["run"])}>Run a program here</a>, or with the command line.</p>
    <${Command} text=${newRun} />
  <//>`;

export function Runs({ query }) {
  const { job_execution: executions, job: jobs, cluster: clusters } = useStore();
  const all = newestFirst(executions.values());
  const runs = all.filter((run) => passes(run, jobs, query));
  useTick(runs.some((run) => !hasEnded(run)));
  const { status: word = "" } = query; // perhaps of the engine, in an old link
  const statuses = Object.entries({ ...CHOICES, [word]: CHOICES[word] ?? word });
  const shown = () => html`
    <${Filters}>
      <${Search} text="Find a job or run" say="Find a job by name, or a run by id" of="q" query=${query} />
      <${Filter} label="Status" of="status" query=${query} rows=${statuses} />
      <${Filter} label="Time" of="hours" query=${query} rows=${RANGES} />
      <${Filter} label="Cluster" of="cluster" query=${query} rows=${clusterChoices(clusters)} />
    <//>
    <${List} runs=${runs} jobs=${jobs} />`;
  return html`
    <${Head} title="Runs" number=${runs.length} />
    ${all.length ? shown() : html`<${None} />`}`;
}

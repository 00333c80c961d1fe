// The table of runs, and the newest runs of a cluster or a job.
import { html } from "./html.js";
import { Id, Link, Section, State, Table, Time } from "./parts.js";
import { hasEnded, jobName, length, newestFirst, outcome, trouble } from "./records.js";
import { to } from "./route.js";
import { store } from "./store.js";
import { plain } from "./text.js";
import { duration, now } from "./time.js";

const NEWEST = 5;
const REASON = 300; // characters of a reason
const COLUMNS = { Job: "", Status: "", Started: "", Duration: "wide amount", Cluster: "wide" };

// How far a run is that goes on, if its cluster tells it.
export function Progress({ run }) {
  const part = run.progress;
  return !hasEnded(run) && typeof part === "number" && html`<div class="progress">
    <progress max="1" value=${part} aria-label="Progress"></progress>${" "}
    <span class="amount">${Math.round(part * 100)} %</span>
  </div>`;
}

// Why a run failed or waits, in one line.
function Reason({ run }) {
  const text = plain(trouble(run).slice(0, REASON));
  return text && html`<div class="reason faint" dir="auto" title=${text}>${text}</div>`;
}

const row = (run) => html`<tr key=${run.id}>
  <th scope="row"><${Link} view="runs" id=${run.id} name=${jobName(store.job, run)} /> <${Id} run=${run} /></th>
  <td><${State} word=${outcome(run)} /><${Progress} run=${run} /><${Reason} run=${run} /></td>
  <td><${Time} at=${run.created_at} /></td>
  <td class="wide amount">${duration(length(run, now()))}</td>
  <td class="wide"><${Link} view="clusters" ...${store.cluster.get(run.cluster_id)} /></td>
</tr>`;

export const RunTable = ({ runs }) => html`<${Table} columns=${COLUMNS}>${runs.map(row)}<//>`;

// The runs that have `id` as `of`. query: the filters that find all of them.
export function NewestRuns({ of, id, query }) {
  const runs = newestFirst([...store.job_execution.values()].filter((run) => run[of] === id));
  const all = html`<a class="push" href=${to(["runs"], query)}>All runs</a>`;
  return runs.length > 0 && html`<${Section} id="runs" title="Newest runs" number=${runs.length} side=${all}>
    <${RunTable} runs=${runs.slice(0, NEWEST)} />
  <//>`;
}

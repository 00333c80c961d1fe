// One run of a job: its phases, progress, failure, log and configuration; cancel and rerun.
import { useState } from "./hooks.js";
import { html } from "./html.js";
import { call, path } from "./api.js";
import { cancelRun, rerun, tunnel, why } from "./commands.js";
import { Log } from "./log.js";
import {
  Command,
  Cut,
  Id,
  Lines,
  Link,
  Missing,
  Name,
  Outside,
  Problem,
  Section,
  State,
  Table,
  Time,
  Title,
  tone,
  useTick,
  useTitle,
  Values,
} from "./parts.js";
import { Question } from "./question.js";
import { hasEnded, jobName, length, outcome, shortId, status } from "./records.js";
import { to } from "./route.js";
import { Progress } from "./run_table.js";
import { keep, store, useStore } from "./store.js";
import { useStory } from "./story.js";
import { pageAddress, plain } from "./text.js";
import { clock, duration, full, moment, now } from "./time.js";

const MASK = "***";

function Cancel({ run, close }) {
  const act = async (key) => {
    const before = store.job_execution.get(run.id);
    keep("job_execution", await call("POST", path("job-executions", run.id, "cancel"), { key }), before);
  };
  return html`
    <${Question} title="Cancel this run?" verb="Cancel the run" danger command=${cancelRun(run.id)}
        act=${act} close=${close}>
      <p>svcd kills the job on its cluster. What it has written stays.</p>
    <//>`;
}

const AGAIN =
  "The same job, cluster, data and configuration. Most jobs fail when their output exists: delete it before.";

function Rerun({ run, close }) {
  const body = { cluster_id: run.cluster_id, job_configs: run.job_configs };
  for (const each of ["input_id", "output_id"]) if (run[each]) body[each] = run[each];
  const act = async (key) => {
    const here = location.hash;
    const { job_execution: made } = await call("POST", path("jobs", run.job_id, "execute"), { body, key });
    keep("job_execution", made);
    if (location.hash === here) location.hash = to(["runs", made.id]); // else the user has gone elsewhere
  };
  return html`
    <${Question} title="Run it again?" verb="Run again" command=${rerun(run.id)} act=${act} close=${close}>
      <p>${AGAIN}</p>
    <//>`;
}

// One phase: when it began, and how long it took. on: it goes on; look: the tone of its end.
function Phase({ name, at, until, on, look }) {
  const past = at !== null;
  const time = past && clock(at) + (until ? `, ${duration(until - at)}` : "");
  return html`
    <li class=${`${past ? "past" : ""} ${on ? "on" : ""} ${look}`} aria-current=${on ? "step" : undefined}>
      <strong>${name}</strong>
      ${past ? html`<span class="faint" title=${full(at)}>${time}</span>` : html`<span class="faint">not yet</span>`}
    </li>`;
}

// The phases on a line. waits: the run waits for something that is missing.
function Phases({ run, waits }) {
  const created = moment(run.created_at);
  const started = moment(run.start_time);
  const ended = moment(run.end_time);
  const over = hasEnded(run);
  const running = waits ? "Waiting" : "Running";
  const isRunning = started !== null;
  const look = ended === null ? "" : tone(outcome(run));
  return html`<ol class="phases-line">
    <${Phase} name="Accepted" at=${created} until=${started ?? ended ?? now()} on=${!isRunning && !over} look="" />
    <${Phase} name=${running} at=${started} until=${ended ?? now()} on=${isRunning && ended === null && !over} look="" />
    <${Phase} name=${over ? outcome(run) : "Ended"} at=${ended} look=${look} />
  </ol>`;
}

function valueOf(value) {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return html`<${Cut} text=${text} most=${400} />`;
}

// values: by name, or in their order.
function Configs({ title, values }) {
  const isList = Array.isArray(values);
  const rows = Object.entries(values ?? {}).map(([name, value]) => [isList ? String(Number(name) + 1) : name, value]);
  const drawn = rows.map(([name, value]) => [html`<code>${plain(name)}</code>`, html`<code>${valueOf(value)}</code>`]);
  return rows.length > 0 && html`<h3>${title}</h3><${Values} rows=${drawn} />`;
}

function Data({ source }) {
  if (!source) return html`<span class="faint">a data source that is gone</span>`;
  return html`<${Name}>${source.name}<//> <code class="faint"><${Cut} text=${source.url} most=${200} /></code>`;
}

const Step = ({ name, status, external_id: application, page, error_code: code, error_text: text }) => html`<tr>
  <th scope="row" class="name">${plain(name)} <${Outside} address=${page} text=${application} /></th>
  <td>${plain(status)}</td>
  <td dir="auto"><${Cut} text=${[code, text].filter(Boolean).join(": ") || "–"} /></td>
</tr>`;

// The pages of the cluster at which runs are seen: [part, address] each.
function pagesOf(cluster) {
  const links = (part) => Object.values(cluster?.info[part] ?? {}).map((address) => [part, address]);
  return ["YARN", "MapReduce", "Spark"].flatMap(links).filter(([, address]) => pageAddress(address));
}

const Pages = ({ pages, name }) => html`
  <p class="facts">
    Pages: ${pages.map(([text, address]) => html`<${Outside} ...${{ text, address }} />`)}
    If your browser cannot reach them:
  </p>
  <${Command} open text=${tunnel(name)} />`;

const Steps = ({ steps, cluster, pages = pagesOf(cluster) }) => html`
  <${Section} id="actions" title="Steps of the engine">
    <${Table} columns=${{ Step: "", Status: "", Error: "" }}>
      ${steps.map((step, at) => html`<${Step} key=${at} ...${step} />`)}
    <//>
    ${pages.length > 0 && html`<${Pages} pages=${pages} name=${cluster.name} />`}
  <//>`;

// What is missing or went wrong, and what to do.
const Fault = ({ text, advice }) => html`
  <${Lines} text=${text} />${advice && html`<p>What to do: ${plain(advice)}</p>`}`;

const Failure = ({ run, failure }) => html`
  <${Problem} title=${html`<span class="code">${plain(failure.code)}</span> in ${plain(failure.step)}`}>
    <${Fault} ...${failure} /><${Command} text=${why(run.id)} />
  <//>`;

const Waiting = ({ work: { since, until, wait } }) => html`<div class="notice" role="status">
  <strong>Waits since <${Time} at=${since} />: ${plain(wait.code)} in ${plain(wait.step)}</strong>
  <${Fault} ...${wait} />
  ${until && html`<p>svcd gives up at ${full(moment(until))}.</p>`}
</div>`;

const Facts = ({ run, job, cluster }) => html`
  <${State} word=${outcome(run)} />
  ${job && html`<span>${plain(job.type)} <a href=${to(["jobs", job.id])}>job</a></span>`}
  <span>on <${Link} view="clusters" ...${cluster} /></span>
  <span>${duration(length(run, now()))}</span>
  <span>accepted <${Time} at=${run.created_at} /></span>
  <span>run <${Id} run=${run} /></span>`;

// Why a run cannot be repeated; "" when it can.
function obstacle(run, job, cluster) {
  if (!job) return "The job was deleted";
  if (!cluster) return "Its cluster is gone";
  const isMasked = JSON.stringify(run.job_configs).includes(JSON.stringify(MASK));
  return isMasked ? "A part of its configuration is hidden from you" : "";
}

function Configuration({ run, sources }) {
  const data = (id) => id && html`<${Data} source=${sources.get(id)} />`;
  const ids = [
    ["Execution", html`<code>${plain(run.id)}</code>`],
    ["Engine's id", run.workflow_job_id && html`<code>${plain(run.workflow_job_id)}</code>`],
    ["Return code", String(run.return_code ?? "")],
  ];
  return html`<${Section} id="configuration" title="Data and configuration">
    ${(run.input_id || run.output_id) && html`
      <${Values} rows=${[["Input", data(run.input_id)], ["Output", data(run.output_id)]]} />`}
    <${Configs} title="Options" values=${run.job_configs.configs} />
    <${Configs} title="Parameters" values=${run.job_configs.params} />
    <${Configs} title="Arguments" values=${run.job_configs.args} />
    <${Values} rows=${ids} />
  <//>`;
}

const QUESTIONS = { cancel: Cancel, rerun: Rerun };

export function Run({ id, query }) {
  const { job_execution: executions, job: jobs, cluster: clusters, data_source: sources, loaded } = useStore();
  const [question, ask] = useState("");
  const run = executions.get(id);
  useTick(run && !hasEnded(run));
  const mark = run ? JSON.stringify([run.info, run.start_time, run.end_time]) : null;
  const story = useStory(path("job-executions", id, "story"), run && status(run), mark);
  const job = run && jobs.get(run.job_id);
  const name = run && jobName(jobs, run);
  useTitle(run ? `${outcome(run)}: ${name} ${shortId(run)}` : "Run");
  if (!run) return loaded && html`<${Missing} what="run" id=${id} />`;
  const cluster = clusters.get(run.cluster_id);
  const { failure, work, steps } = story ?? { steps: [] };
  const ended = hasEnded(run);
  const why = obstacle(run, job, cluster);
  const Ask = QUESTIONS[question];
  const facts = html`<${Facts} run=${run} job=${job} cluster=${cluster} />`;
  return html`
    <${Title} all="Runs" name=${name} facts=${facts}>
      ${!ended && html`<button type="button" class="danger" onClick=${() => ask("cancel")}>Cancel</button>`}
      <button type="button" disabled=${Boolean(why)} title=${why} onClick=${() => ask("rerun")}>Run again</button>
      ${job && html`<a class="button" href=${to(["jobs", job.id], { run: "1", like: id })}>Run with changes</a>`}
    <//>
    ${failure && html`<${Failure} run=${run} failure=${failure} />`}
    ${work?.wait && html`<${Waiting} work=${work} />`}
    <${Phases} run=${run} waits=${Boolean(work?.wait)} />
    <${Progress} run=${run} />
    <${Log} key=${id} id=${id} file=${`${name}-${shortId(run)}.log`} ended=${ended} query=${query} reason=${failure?.text} />
    ${steps.length > 0 && html`<${Steps} steps=${steps} cluster=${cluster} />`}
    <${Configuration} run=${run} sources=${sources} />
    ${Ask && html`<${Ask} run=${run} close=${() => ask("")} />`}`;
}

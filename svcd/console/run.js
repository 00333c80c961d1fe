// One run of a job: its phases, progress, failure, log and configuration; cancel and rerun.
import { useState } from "./hooks.js";
import { html } from "./html.js";
import { path, send } from "./api.js";
import * as commands from "./commands.js";
import { Progress } from "./home.js";
import { Log } from "./log.js";
import { Command, Cut, Empty, Lines, Name, Problem, Question, State, Table, Time, tone, useTick, useTitle } from "./parts.js";
import { hasEnded, length, outcome, status } from "./records.js";
import { filter, to } from "./route.js";
import { keep, useStore } from "./store.js";
import { plain } from "./text.js";
import { clock, duration, full, moment, now } from "./time.js";

const MASK = "***";

function Cancel({ run, close }) {
  const act = async (key) => keep("job_execution", await (await send("POST", path("job-executions", run.id, "cancel"), { key })).json());
  return html`<${Question} title="Cancel this run?" verb="Cancel the run" danger command=${commands.cancelRun(run.id)} act=${act} close=${close}>
    <p>svcd kills the job on its cluster. What it has written stays.</p><//>`;
}

function Rerun({ run, close }) {
  const body = { cluster_id: run.cluster_id, job_configs: run.job_configs };
  for (const each of ["input_id", "output_id"]) if (run[each]) body[each] = run[each];
  const act = async (key) => {
    const here = location.hash;
    const made = (await (await send("POST", path("jobs", run.job_id, "execute"), { body, key })).json()).job_execution;
    keep("job_execution", made);
    if (location.hash === here) location.hash = to(["runs", made.id]); // else the user has gone elsewhere
  };
  return html`<${Question} title="Run it again?" verb="Run again" command=${commands.rerun(run.id)} act=${act} close=${close}>
    <p>The same job with the same cluster, input, output and configuration. Most jobs fail when their output exists: delete it before.</p><//>`;
}

// The phases on a line: when each began, and how long it took.
function Phases({ run }) {
  const created = moment(run.created_at);
  const started = moment(run.start_time);
  const ended = moment(run.end_time);
  const word = status(run);
  const steps = [
    { name: "Accepted", at: created, until: started ?? ended ?? now() },
    { name: run.info?.waiting ? "Waiting" : "Running", at: started, until: ended ?? now() },
    { name: hasEnded(run) ? word : "Ended", at: ended },
  ];
  return html`<ol class="phases-line">${steps.map((each, at) => {
    const past = each.at !== null;
    const on = past && !steps[at + 1]?.at && !hasEnded(run);
    return html`<li key=${at} class=${`${past ? "past" : ""} ${on ? "on" : ""} ${at === 2 && past ? tone(outcome(run)) : ""}`} aria-current=${on ? "step" : undefined}>
      <strong>${each.name}</strong>
      ${past ? html`<span class="faint" title=${full(each.at)}>${clock(each.at)}${each.until ? `, ${duration(each.until - each.at)}` : ""}</span>` : html`<span class="faint">not yet</span>`}</li>`;
  })}</ol>`;
}

const valueOf = (value) => html`<${Cut} text=${typeof value === "string" ? value : JSON.stringify(value)} most=${400} />`;
const Values = ({ title, values }) => {
  const rows = Array.isArray(values) ? values.map((each, at) => [String(at + 1), each]) : Object.entries(values ?? {});
  return rows.length > 0 && html`<h3>${title}</h3><dl class="values">${rows.map(([name, value]) => html`<div key=${name}><dt><code>${plain(name)}</code></dt><dd><code>${valueOf(value)}</code></dd></div>`)}</dl>`;
};

const Data = ({ title, id, sources }) => id && html`<div><dt>${title}</dt><dd>${sources.has(id) ? html`<${Name}>${sources.get(id).name}<//> <code class="faint"><${Cut} text=${sources.get(id).url} most=${200} /></code>` : html`<span class="faint">a data source that is gone</span>`}</dd></div>`;

const Actions = ({ actions }) => html`<section aria-labelledby="actions"><h2 id="actions">Steps of the engine</h2>
  <${Table} columns=${{ Step: "", Status: "", Error: "" }}>${actions.map((each, at) => html`<tr key=${at}><th scope="row">${plain(each.name ?? each.id)}</th><td>${plain(each.status)}</td>
    <td dir="auto"><${Cut} text=${[each.errorCode, each.errorMessage].filter(Boolean).join(": ") || "–"} /></td></tr>`)}<//></section>`;

export function Run({ id, query }) {
  const { job_execution: executions, job: jobs, cluster: clusters, data_source: sources, loaded } = useStore();
  const [question, ask] = useState("");
  const run = executions.get(id);
  useTick(run && !hasEnded(run) ? 1000 : 30_000);
  const job = run && jobs.get(run.job_id);
  useTitle(job?.name ?? "Run");
  if (!run) return loaded && html`<${Empty} title="This run does not exist"><p>It may have been deleted. <a href=${to(["runs"])}>See all runs</a></p><//>`;
  const cluster = clusters.get(run.cluster_id);
  const { failure, waiting, actions } = run.info ?? {};
  const ended = hasEnded(run);
  const masked = JSON.stringify(run.job_configs).includes(JSON.stringify(MASK));
  const impossible = !job ? "The job was deleted" : !cluster ? "Its cluster is gone" : masked ? "A part of its configuration is hidden from you" : "";
  return html`<header class="title">
      <div><p class="faint crumbs"><a href=${to(["runs"])}>Runs</a></p>
        <h1><${Name}>${job?.name ?? "deleted job"}<//></h1>
        <p class="facts"><${State} word=${status(run)} of=${outcome(run)} />${job && html`<span>${plain(job.type)} <a href=${to(["jobs", job.id])}>job</a></span>`}<span>on ${cluster ? html`<a href=${to(["clusters", cluster.id])}><${Name}>${cluster.name}<//></a>` : "a cluster that is gone"}</span><span>${duration(length(run, now()))}</span><span>accepted <${Time} at=${run.created_at} /></span></p></div>
      <div class="buttons">
        ${!ended && html`<button type="button" class="danger" onClick=${() => ask("cancel")}>Cancel</button>`}
        <button type="button" disabled=${Boolean(impossible)} title=${impossible} onClick=${() => ask("rerun")}>Run again</button>
        ${job && html`<a class="button" href=${to(["jobs", job.id], { run: "1", like: id })}>Run with changes</a>`}
      </div></header>
    ${failure && html`<${Problem} title=${html`<span class="code">${plain(failure.code)}</span> in ${plain(failure.step)}`}><${Lines} text=${failure.text} /><${Command} text=${commands.why(run.id)} /><//>`}
    ${waiting && html`<div class="notice" role="status"><strong>Waits since <${Time} at=${waiting.since} />: ${plain(waiting.code)} in ${plain(waiting.step)}</strong><${Lines} text=${waiting.text} />${waiting.until && html`<p>svcd gives up at ${full(moment(waiting.until))}.</p>`}</div>`}
    <${Phases} run=${run} />
    ${!ended && run.progress !== null && html`<p class="progress"><${Progress} run=${run} /></p>`}
    <${Log} id=${id} query=${query} filter=${filter} />
    <${Command} text=${commands.followLog(run.id, query.all)} />
    ${Array.isArray(actions) && actions.length > 0 && html`<${Actions} actions=${actions} />`}
    <section aria-labelledby="configuration"><h2 id="configuration">Data and configuration</h2>
      ${(run.input_id || run.output_id) && html`<dl class="values"><${Data} title="Input" id=${run.input_id} sources=${sources} /><${Data} title="Output" id=${run.output_id} sources=${sources} /></dl>`}
      <${Values} title="Options" values=${run.job_configs.configs} /><${Values} title="Parameters" values=${run.job_configs.params} /><${Values} title="Arguments" values=${run.job_configs.args} />
      <dl class="values"><div><dt>Execution</dt><dd><code>${plain(run.id)}</code></dd></div><div><dt>Engine's id</dt><dd><code>${plain(run.workflow_job_id ?? "–")}</code></dd></div><div><dt>Return code</dt><dd>${run.return_code ?? "–"}</dd></div></dl></section>
    ${question === "cancel" && html`<${Cancel} run=${run} close=${() => ask("")} />`}
    ${question === "rerun" && html`<${Rerun} run=${run} close=${() => ask("")} />`}`;
}

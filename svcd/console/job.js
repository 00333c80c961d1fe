// One job: its binaries and newest runs, and the form that runs it.
import { useEffect, useState } from "./hooks.js";
import { html } from "./html.js";
import { call, get, path } from "./api.js";
import * as commands from "./commands.js";
import { Form } from "./forms.js";
import { KINDS, Last, Long, make, Remove, ROWS } from "./job_parts.js";
import { Command, Cut, Lines, Missing, Name, Section, Time, Title, useTick, useTitle, Values } from "./parts.js";
import { length, newestFirst } from "./records.js";
import { to } from "./route.js";
import { store, useStore } from "./store.js";
import { count, plain } from "./text.js";
import { duration, now } from "./time.js";

const RUNS = 10;
const MASK = "***";
const BOTH = ["params", "args"];
const USES = { Jar: [], MapReduce: [], Java: ["args"] }; // what jobs of a type take beside options; other types: BOTH
const CONFIGS = "job_configs.configs";
const PARAMS = "job_configs.params";
const ARGS = "job_configs.args";

const lines = (text) => text.split("\n").filter(Boolean);

// "a=b" on each line -> {a: "b"}, and back. A value that the API has masked is left out.
function pairs(text) {
  const split = lines(text).map((line) => line.split(/=(.*)/s));
  return Object.fromEntries(split.map(([name, value = ""]) => [name, value]));
}
function typed(values) {
  const known = Object.entries(values ?? {}).filter(([, value]) => value !== MASK);
  return known.map((pair) => pair.join("=")).join("\n");
}

// The body of the request to run a job. Empty fields are left out.
function request({ [CONFIGS]: configs, [PARAMS]: params, [ARGS]: args, ...ids }) {
  const given = Object.fromEntries(Object.entries(ids).filter(([, id]) => id));
  return { ...given, job_configs: { configs: pairs(configs), params: pairs(params), args: lines(args) } };
}

// The values that the form begins with. like: an execution that has them, if any.
function firstOf(like, clusters) {
  const given = like?.job_configs ?? {};
  return {
    cluster_id: like?.cluster_id ?? (clusters.length === 1 ? clusters[0].id : ""),
    input_id: like?.input_id ?? "",
    output_id: like?.output_id ?? "",
    [CONFIGS]: typed(given.configs),
    [PARAMS]: typed(given.params),
    [ARGS]: Object.values(given.args ?? {}).filter((each) => each !== MASK).join("\n"),
  };
}

function Plan({ plan: { staged, input, output, workflow, job_credentials: logins } }) {
  const data = (each) => each && html`<${Long} text=${each.url} />`;
  const rows = [
    ["Copied to the cluster", html`<${Name}>${staged.map((each) => each.name).join(", ") || "nothing"}<//>`],
    ["Input", data(input)],
    ["Output", data(output)],
    ["Keystone", logins > 0 && `${count(logins, "application credential")} for the job`],
  ];
  return html`<section class="plan" role="status">
    <h3>svcd would accept this</h3>
    <${Values} rows=${rows} />
    <details>
      <summary>Definition for the workflow engine</summary>
      <pre class="log" tabindex="0"><${Cut} text=${workflow} most=${20_000} /></pre>
    </details>
  </section>`;
}

// Options that jobs of this type know; a button adds one.
function Hints({ hints, form }) {
  const added = ({ name, value }) => (before) => ({
    [CONFIGS]: `${before[CONFIGS].replace(/\n?$/, before[CONFIGS] && "\n")}${name}=${value}`,
  });
  return html`<details>
    <summary>${count(hints.length, "known option")}</summary>
    <ul class="plain">${hints.map((each) => html`
      <li key=${each.name}>
        <button type="button" class="small" onClick=${() => form.change(added(each))}>${plain(each.name)}</button>${" "}
        <span class="faint">${plain(each.description)}</span>
      </li>`)}
    </ul>
  </details>`;
}

const UPLOAD =
  "The page cannot reach the object store. This command uploads a file or a folder to it with your login, and runs the job:";

const LocalInput = ({ command }) => html`<details>
  <summary>Use a file of your computer</summary>
  <p>${UPLOAD}</p>
  <${Command} open text=${command} />
</details>`;

function useHints(type) {
  const [hints, set] = useState([]);
  useEffect(() => {
    const read = get(path("jobs", "config-hints", type));
    read.then((answer) => set(answer.job_config.configs), () => {}); // they are advice only
  }, []);
  return hints;
}

const clusterOption = ({ id, name, status }) => [id, status === "Active" ? name : `${name}: ${status}, the job waits for it`];

// The form that runs a job. like: an execution whose values it begins with.
function Execute({ job, like }) {
  const hints = useHints(job.type);
  const usable = newestFirst(store.cluster.values()).filter((each) => !["Error", "Deleting"].includes(each.status));
  const clusters = usable.slice(0, ROWS);
  const known = newestFirst(store.data_source.values()).slice(0, ROWS);
  const sources = [["", "none"], ...known.map(({ id, name, url }) => [id, `${name} (${url.slice(0, 60)})`])];
  const uses = USES[job.type] ?? BOTH;
  // The command line takes a name, too, which a file of the computer may have; a URL has no login.
  const placeOf = ({ type, url, name } = {}) => (type === "hdfs" ? url : name);
  const sourceOf = (id) => placeOf(store.data_source.get(id));
  const command = (values, input = sourceOf(values.input_id)) => commands.runJob({
    ...request(values).job_configs,
    type: job.type,
    files: [...job.mains, ...job.libs].map((each) => each.file_name ?? each.name),
    cluster: store.cluster.get(values.cluster_id)?.name,
    input,
    output: sourceOf(values.output_id),
  });
  const local = ({ values }) => html`<${LocalInput} command=${command(values, "PATH")} />`;
  const advice = (form) => hints.length > 0 && html`<${Hints} hints=${hints} form=${form} />`;
  const hint = html`<p>
    <a href=${to(["jobs"], { show: "sources", new: "1" })}>Make a data source</a>; what is typed here stays.
  </p>`;
  const fields = () => [
    { name: "cluster_id", label: "Cluster", options: [["", "choose…"], ...clusters.map(clusterOption)] },
    { name: "input_id", label: "Input", options: sources, advice: local },
    { name: "output_id", label: "Output, which must not exist yet", options: sources, hint },
    { name: CONFIGS, label: "Options: NAME=VALUE, one on a line", lines: 3, advice },
    uses.includes("params") && { name: PARAMS, label: "Parameters: NAME=VALUE, one on a line", lines: 2 },
    uses.includes("args") && { name: ARGS, label: "Arguments, one on a line", lines: 2 },
  ].filter(Boolean);
  const execute = path("jobs", job.id, "execute");
  const check = async (values) => {
    const { plan } = await call("POST", `${execute}?dry_run=true`, { body: request(values) });
    return html`<${Plan} plan=${plan} />`;
  };
  return html`
    <${Form} name=${`run ${job.id} ${like?.id}`} title="Run it" verb="Run the job" first=${firstOf(like, clusters)}
      fields=${fields} check=${check} command=${command}
      act=${(values, key) => make(["jobs", job.id, "execute"], "job_execution", request(values), key)}
      done=${(run) => (location.hash = to(["runs", run.id]))} />`;
}

const Binary = ({ name, url }) => html`
  <p><${Name}>${name}<//> <span class="faint"><${Long} text=${url} /></span></p>`;

function listed(rows) {
  if (!rows.length) return html`<p class="faint">none</p>`;
  return rows.map((each) => html`<${Binary} key=${each.id} ...${each} />`);
}

function Runs({ job, runs }) {
  const all = runs.length > RUNS && html`<a class="push" href=${to(["runs"], { q: job.name })}>All runs</a>`;
  return html`<${Section} id="runs" title="Newest runs" number=${runs.length} side=${all}>
    ${runs.length
      ? html`<ul class="plain">${runs.slice(0, RUNS).map((run) => html`
          <li key=${run.id}><${Last} run=${run} /><span class="faint">${duration(length(run, now()))}</span></li>`)}
        </ul>`
      : html`<p class="faint">The job has not run yet.</p>`}
  <//>`;
}

export function Job({ id, query }) {
  const { loaded } = useStore();
  const [question, ask] = useState(false);
  const job = store.job.get(id);
  useTick(30_000);
  useTitle(job?.name ?? "Job");
  if (!job) return loaded && html`<${Missing} what="job" list=${["jobs"]} id=${id} />`;
  const runs = newestFirst([...store.job_execution.values()].filter((each) => each.job_id === id));
  const facts = html`<span>${plain(job.type)}</span><span>created <${Time} at=${job.created_at} /></span>`;
  const form = to(["jobs", id], { run: query.run ? "" : "1" });
  return html`
    <${Title} list=${["jobs"]} all="Jobs" name=${job.name} facts=${facts}>
      <a class="button" href=${form}>${query.run ? "Close the form" : "Run it"}</a>
      <a class="button" href=${to(["jobs"], { new: "1", like: id })}>New from this</a>
      <button type="button" class="danger" onClick=${() => ask(true)}>Delete</button>
    <//>
    <${Lines} text=${job.description} />
    ${query.run && html`<${Execute} key=${query.like} job=${job} like=${store.job_execution.get(query.like)} />`}
    <${Section} id="binaries" title="Binaries">
      <${Values} rows=${[["Main", listed(job.mains)], ["Libraries", listed(job.libs)]]} />
    <//>
    <${Runs} job=${job} runs=${runs} />
    ${question && html`<${Remove} of=${KINDS.jobs} row=${job} close=${() => ask(false)} />`}`;
}

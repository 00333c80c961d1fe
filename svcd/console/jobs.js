// Jobs, their data sources and binaries: lists, one job with its runs, and the forms that make and run them.
import { useEffect, useState } from "./hooks.js";
import { html } from "./html.js";
import { get, path, send } from "./api.js";
import * as commands from "./commands.js";
import { Drop, Form } from "./forms.js";
import { Command, Cut, Empty, Lines, Name, Question, State, Table, Time, useTick, useTitle } from "./parts.js";
import { length, newestFirst, outcome, status } from "./records.js";
import { filter, to } from "./route.js";
import { keep, store, useStore } from "./store.js";
import { count, plain } from "./text.js";
import { duration, now } from "./time.js";

const ROWS = 200; // of a list and of a choice
const RUNS = 10;
const MASK = "***";
const TYPES = ["Pig", "MapReduce", "Jar", "Java", "Shell", "Spark"];
const USES = { Jar: [], MapReduce: [], Java: ["args"] }; // what jobs of a type take beside options; other types take both

const Long = ({ text }) => html`<code><${Cut} text=${text} most=${90} /></code>`;
const Last = ({ run }) => (run ? html`<a href=${to(["runs", run.id])}><${State} word=${status(run)} of=${outcome(run)} /></a> <span class="faint wide"><${Time} at=${run.created_at} /></span>` : html`<span class="faint">never</span>`);
const address = ["URL", (row) => html`<${Long} text=${row.url} />`];
const when = ["Created", (row) => html`<${Time} at=${row.created_at} />`];

// word: of the command; kind: of the store; list: of the API; columns: title and drawing each, the last two not on a phone.
const KINDS = {
  jobs: {
    one: "job", title: "Jobs", kind: "job", list: "jobs", gone: "Its binaries stay. svcd refuses while it has runs.",
    columns: [
      ["Type", (row) => plain(row.type)],
      ["Last run", (row, last) => html`<${Last} run=${last.get(row.id)} />`],
      ["Binaries", (row) => html`<${Cut} text=${[...row.mains, ...row.libs].map((each) => each.name).join(", ")} most=${90} />`],
      when,
    ],
  },
  sources: {
    one: "data source", word: "source", title: "Data sources", kind: "data_source", list: "data-sources", gone: "The data itself stays where it is.",
    columns: [["Type", (row) => plain(row.type)], address, when],
  },
  binaries: {
    one: "binary", word: "binary", title: "Binaries", kind: "job_binary", list: "job-binaries", gone: "Its data goes too, if svcd keeps it for no other binary.",
    columns: [address, when],
  },
};

function Remove({ of, row, close }) {
  const act = async (key) => {
    const here = location.hash;
    await send("DELETE", path(of.list, row.id), { key });
    const data = of.word === "binary" && row.url.split("internaldb://")[1];
    if (data) await send("DELETE", path("job-binary-internals", data)).catch(() => {}); // another binary may have it
    if (!of.word && location.hash === here) location.hash = to(["jobs"]);
  };
  const command = of.word ? `svcd ${of.word} rm ${commands.word(row.name)}` : commands.request("DELETE", path(of.list, row.id));
  return html`<${Question} title=${`Delete this ${of.one}?`} verb=${`Delete the ${of.one}`} danger confirm=${row.name} command=${command} act=${act} close=${close}><p>${of.gone} This cannot be undone.</p><//>`;
}

// Send a form, and show the record that the answer has.
async function make(list, kind, body, key) {
  const made = (await (await send("POST", path(...list), { body, key })).json())[kind];
  keep(kind, made);
  return made;
}

function NewSource() {
  const fields = ({ type }) => [
    { name: "name", label: "Name", required: true, autofocus: true },
    { name: "type", label: "Type", options: [["hdfs", "hdfs: a folder of the cluster"], ["objstore", "objstore: a folder of the object store"]] },
    { name: "url", label: "URL", required: true, placeholder: type === "hdfs" ? "hdfs:///path" : "objstore://container/path" },
    ...(type === "hdfs" ? [] : [{ name: "credentials.user", label: "User" }, { name: "credentials.password", label: "Password", type: "password", autocomplete: "new-password" }]),
    { name: "description", label: "Description", lines: 2 },
  ];
  const act = ({ "credentials.user": user, "credentials.password": password, ...body }, key) =>
    make(["data-sources"], "data_source", body.type === "hdfs" || !(user || password) ? body : { ...body, credentials: { user, password } }, key);
  return html`<${Form} name="source" title="New data source" verb="Create the data source" fields=${fields} act=${act} done=${() => (location.hash = to(["jobs"], { show: "sources" }))} command=${commands.addSource}
    first=${{ name: "", type: "hdfs", url: "", "credentials.user": "", "credentials.password": "", description: "" }} />`;
}

// A free name for a job like another one: count, count-2, count-3.
function another(name) {
  const taken = new Set([...store.job.values()].map((each) => each.name));
  const [, stem] = /^(.*?)(?:-\d+)?$/s.exec(name);
  let n = 2;
  while (taken.has(`${stem.slice(0, 45)}-${n}`)) n += 1;
  return `${stem.slice(0, 45)}-${n}`;
}

// The binaries of a new job: those of the project, and files that are uploaded now.
const binaries = (name, label) => ({ name, label, draw: ({ values, change }) => html`<div class="choices">${newestFirst(store.job_binary.values()).slice(0, ROWS).map(({ id, name: text }) => html`<label class="check" key=${id}>
    <input type="checkbox" checked=${values[name].includes(id)} onChange=${(e) => change({ [name]: e.target.checked ? [...values[name], id] : values[name].filter((each) => each !== id) })} /> <${Name}>${text}<//></label>`)}</div>
  <${Drop} done=${(made) => change((before) => ({ [name]: [...before[name], made.id] }))} />` });

// like: a job whose values the form begins with. svcd cannot change a job: its runs refer to it.
function NewJob({ like }) {
  const fields = () => [
    { name: "name", label: "Name", required: true, autofocus: true },
    { name: "type", label: "Type", options: TYPES.map((each) => [each, each]) },
    { name: "description", label: "Description", lines: 2 },
    binaries("mains", "Main binaries: what the job starts"), binaries("libs", "Libraries"),
  ];
  const names = (ids) => ids.map((id) => store.job_binary.get(id)?.name ?? id);
  const ids = (rows) => rows?.map((each) => each.id) ?? [];
  const first = { name: like ? another(like.name) : "", type: like?.type ?? "Pig", description: like?.description ?? "", mains: ids(like?.mains), libs: ids(like?.libs) };
  return html`<${Form} name=${`job ${like?.id}`} title=${like ? html`New job like <bdi>${plain(like.name)}</bdi>` : "New job"} verb="Create the job" first=${first} fields=${fields}
    act=${(values, key) => make(["jobs"], "job", values, key)} done=${(job) => (location.hash = to(["jobs", job.id]))}
    command=${(values) => commands.addJob({ ...values, mains: names(values.mains), libs: names(values.libs) })} />`;
}

const NewBinary = () => html`<section class="sheet"><h2>New binaries</h2><${Drop} done=${() => {}} /><p class="faint">The same as a command:</p><${Command} text=${commands.addBinary("FILE", "FILE")} /></section>`;

const NEW = { jobs: NewJob, sources: NewSource, binaries: NewBinary };

export function Jobs({ query }) {
  useStore();
  const [removed, remove] = useState(null);
  const show = query.show in KINDS ? query.show : "jobs";
  const of = KINDS[show];
  const wanted = (query.q ?? "").toLowerCase();
  const rows = newestFirst(store[of.kind].values());
  const found = rows.filter((each) => `${each.name} ${each.type ?? ""} ${each.url ?? ""}`.toLowerCase().includes(wanted));
  const last = new Map();
  if (!of.word) for (const run of store.job_execution.values()) if (!(last.get(run.job_id)?.created_at > run.created_at)) last.set(run.job_id, run);
  useTitle(of.title);
  const New = query.new && NEW[show];
  const side = (at) => (at > of.columns.length - 3 ? "wide" : "");
  return html`<header class="title"><h1 class="unseen">${of.title}</h1>
      <nav class="tabs" aria-label="Kinds">${Object.entries(KINDS).map(([key, each]) => html`<a key=${key} href=${to(["jobs"], { show: key })} aria-current=${key === show ? "page" : undefined}>${each.title} <span class="number">${store[each.kind].size}</span></a>`)}</nav>
      <a class="button" href=${to(["jobs"], { show, new: New ? "" : "1" })}>${New ? "Close the form" : `New ${of.one}`}</a></header>
    ${New && html`<${New} key=${`${show} ${query.like}`} like=${store.job.get(query.like)} />`}
    ${!rows.length ? !New && html`<${Empty} title=${`No ${of.title.toLowerCase()} yet`}><p>A job is a program of some binaries. It reads and writes data sources.</p><//>` : html`
    <form class="filters" onSubmit=${(e) => e.preventDefault()}><input type="search" placeholder=${`Find a ${of.one}`} aria-label=${`Find a ${of.one}`} value=${query.q ?? ""} onInput=${(e) => filter({ q: e.target.value })} /></form>
    <${Table} columns=${{ Name: "", ...Object.fromEntries(of.columns.map(([title], at) => [title, side(at)])), ...(of.word && { Action: "unseen" }) }}>
      ${found.slice(0, ROWS).map((row) => html`<tr key=${row.id}><th scope="row">${of.word ? html`<${Name}>${row.name}<//>` : html`<a href=${to(["jobs", row.id])}><${Name}>${row.name}<//></a>`}</th>
        ${of.columns.map(([title, draw], at) => html`<td key=${title} class=${side(at)}>${draw(row, last)}</td>`)}
        ${of.word && html`<td class="amount"><button type="button" class="small" aria-label=${`Delete ${plain(row.name)}`} onClick=${() => remove(row)}>Delete</button></td>`}</tr>`)}<//>
    <p class="faint">${!found.length ? `No ${of.one} has this text.` : found.length > ROWS && `The newest ${ROWS} of ${found.length}: type a part of the name to find others.`}</p>`}
    ${removed && html`<${Remove} of=${of} row=${removed} close=${() => remove(null)} />`}`;
}

const pairs = (text) => Object.fromEntries(text.split("\n").filter(Boolean).map((line) => line.split(/=(.*)/s)).map(([name, value = ""]) => [name, value]));
const typed = (values) => Object.entries(values ?? {}).filter(([, value]) => value !== MASK).map((pair) => pair.join("=")).join("\n");

// The body of the request to run a job. Empty fields are left out.
export function request({ "job_configs.configs": configs, "job_configs.params": params, "job_configs.args": args, ...ids }) {
  const given = Object.fromEntries(Object.entries(ids).filter(([, id]) => id));
  return { ...given, job_configs: { configs: pairs(configs), params: pairs(params), args: args.split("\n").filter(Boolean) } };
}

const Plan = ({ plan: { staged, input, output, workflow, job_credentials: logins } }) => html`<section class="plan" role="status"><h3>svcd would accept this</h3><dl class="values">
  <div><dt>Copied to the cluster</dt><dd><${Name}>${staged.map((each) => each.name).join(", ") || "nothing"}<//></dd></div>
  ${Object.entries({ Input: input, Output: output }).map(([name, data]) => data && html`<div key=${name}><dt>${name}</dt><dd><${Long} text=${data.url} /></dd></div>`)}
  ${logins > 0 && html`<div><dt>Keystone</dt><dd>${count(logins, "application credential")} for the job</dd></div>`}</dl>
  <details><summary>Definition for the workflow engine</summary><pre class="log" tabindex="0"><${Cut} text=${workflow} most=${20_000} /></pre></details></section>`;

// The form that runs a job. like: an execution whose values it begins with.
function Execute({ job, like }) {
  const [hints, setHints] = useState([]);
  useEffect(() => {
    get(path("jobs", "config-hints", job.type)).then((answer) => setHints(answer.job_config.configs), () => {}); // they are advice only
  }, []);
  const clusters = newestFirst(store.cluster.values()).filter((each) => !["Error", "Deleting"].includes(each.status)).slice(0, ROWS);
  const sources = [["", "none"], ...newestFirst(store.data_source.values()).slice(0, ROWS).map((each) => [each.id, `${each.name} (${each.url.slice(0, 60)})`])];
  const uses = USES[job.type] ?? ["params", "args"];
  const given = like?.job_configs ?? {};
  const first = { cluster_id: like?.cluster_id ?? (clusters.length === 1 ? clusters[0].id : ""), input_id: like?.input_id ?? "", output_id: like?.output_id ?? "",
    "job_configs.configs": typed(given.configs), "job_configs.params": typed(given.params), "job_configs.args": Object.values(given.args ?? {}).filter((each) => each !== MASK).join("\n") };
  const configs = "job_configs.configs";
  const advice = (form) => hints.length > 0 && html`<details><summary>${count(hints.length, "known option")}</summary><ul class="plain">${hints.map((each) => html`<li key=${each.name}>
    <button type="button" class="small" onClick=${() => form.change((before) => ({ [configs]: `${before[configs].replace(/\n?$/, before[configs] && "\n")}${each.name}=${each.value}` }))}>${plain(each.name)}</button> <span class="faint">${plain(each.description)}</span></li>`)}</ul></details>`;
  const fields = () => [
    { name: "cluster_id", label: "Cluster", options: [["", "choose…"], ...clusters.map((each) => [each.id, each.status === "Active" ? each.name : `${each.name}: ${each.status}, the job waits for it`])] },
    { name: "input_id", label: "Input", options: sources, advice: localInput },
    { name: "output_id", label: "Output, which must not exist yet", options: sources, hint: html`<p><a href=${to(["jobs"], { show: "sources", new: "1" })}>Make a data source</a>; what is typed here stays.</p>` },
    { name: configs, label: "Options: NAME=VALUE, one on a line", lines: 3, advice },
    ...(uses.includes("params") ? [{ name: "job_configs.params", label: "Parameters: NAME=VALUE, one on a line", lines: 2 }] : []),
    ...(uses.includes("args") ? [{ name: "job_configs.args", label: "Arguments, one on a line", lines: 2 }] : []),
  ];
  const localInput = ({ values }) => html`<details><summary>Use a file of your computer</summary>
    <p>The page cannot reach the object store. This command uploads a file or a folder to it with your login, and runs the job:</p>
    <${Command} text=${command(values, "PATH")} /></details>`;
  const check = async (values) => html`<${Plan} plan=${(await (await send("POST", `${path("jobs", job.id, "execute")}?dry_run=true`, { body: request(values) })).json()).plan} />`;
  const command = (values, input = store.data_source.get(values.input_id)?.name) => commands.runJob({ ...request(values).job_configs, type: job.type, files: [...job.mains, ...job.libs].map((each) => each.name),
    cluster: store.cluster.get(values.cluster_id)?.name, input, output: store.data_source.get(values.output_id)?.name });
  return html`<${Form} name=${`run ${job.id} ${like?.id}`} title="Run it" verb="Run the job" first=${first} fields=${fields} check=${check} command=${command}
    act=${(values, key) => make(["jobs", job.id, "execute"], "job_execution", request(values), key)} done=${(run) => (location.hash = to(["runs", run.id]))} />`;
}

const Parts = ({ title, rows }) => html`<div><dt>${title}</dt><dd>${rows.length ? rows.map((each) => html`<p key=${each.id}><${Name}>${each.name}<//> <span class="faint"><${Long} text=${each.url} /></span></p>`) : html`<p class="faint">none</p>`}</dd></div>`;

export function Job({ id, query }) {
  const { loaded } = useStore();
  const [question, ask] = useState(false);
  const job = store.job.get(id);
  useTick(30_000);
  useTitle(job?.name ?? "Job");
  if (!job) return loaded && html`<${Empty} title="This job does not exist"><p>It may have been deleted. <a href=${to(["jobs"])}>See all jobs</a></p><//>`;
  const runs = newestFirst([...store.job_execution.values()].filter((each) => each.job_id === id));
  return html`<header class="title"><div><p class="faint crumbs"><a href=${to(["jobs"])}>Jobs</a></p><h1><${Name}>${job.name}<//></h1>
      <p class="facts"><span>${plain(job.type)}</span><span>created <${Time} at=${job.created_at} /></span></p></div>
      <div class="buttons"><a class="button" href=${to(["jobs", id], { run: query.run ? "" : "1" })}>${query.run ? "Close the form" : "Run it"}</a>
        <a class="button" href=${to(["jobs"], { new: "1", like: id })}>New from this</a><button type="button" class="danger" onClick=${() => ask(true)}>Delete</button></div></header>
    <${Lines} text=${job.description} />
    ${query.run && html`<${Execute} key=${query.like} job=${job} like=${store.job_execution.get(query.like)} />`}
    <section aria-labelledby="binaries"><h2 id="binaries">Binaries</h2><dl class="values"><${Parts} title="Main" rows=${job.mains} /><${Parts} title="Libraries" rows=${job.libs} /></dl></section>
    <section aria-labelledby="runs"><div class="heading"><h2 id="runs">Newest runs <span class="number">${runs.length}</span></h2>${runs.length > RUNS && html`<a class="push" href=${to(["runs"], { q: job.name })}>All runs</a>`}</div>
      ${runs.length ? html`<ul class="plain">${runs.slice(0, RUNS).map((run) => html`<li key=${run.id}><${Last} run=${run} /><span class="faint">${duration(length(run, now()))}</span></li>`)}</ul>` : html`<p class="faint">The job has not run yet.</p>`}</section>
    ${question && html`<${Remove} of=${KINDS.jobs} row=${job} close=${() => ask(false)} />`}`;
}

// Jobs, their data sources and binaries: lists, and the forms that make them.
import { useState } from "./hooks.js";
import { html } from "./html.js";
import { addBinary, addJob, addSource } from "./commands.js";
import { Form } from "./forms.js";
import { ENDINGS, KINDS, make, Remove, ROWS } from "./job_parts.js";
import { Check, Command, Empty, Filters, Found, Head, Link, Name, Search, Table } from "./parts.js";
import { newestFirst } from "./records.js";
import { to } from "./route.js";
import { store, useStore } from "./store.js";
import { plain } from "./text.js";
import { Drop } from "./uploads.js";

export const TYPES = ["Pig", "MapReduce", "Jar", "Java", "Shell", "Spark"];
const PLACES = [["hdfs", "hdfs: a folder of the cluster"], ["objstore", "objstore: a folder of the object store"]];
export const LOGIN = [
  { name: "credentials.user", label: "User of the object store" },
  { name: "credentials.password", label: "Password", type: "password", autocomplete: "new-password" },
];
const FIRST = { name: "", type: "hdfs", url: "", "credentials.user": "", "credentials.password": "", description: "" };
const NAME = { name: "name", label: "Name", required: true, autofocus: true };
const DESCRIPTION = { name: "description", label: "Description", lines: 2 };

function NewSource() {
  const fields = ({ type }) => [
    NAME,
    { name: "type", label: "Type", options: PLACES },
    {
      name: "url",
      label: "URL",
      required: true,
      placeholder: type === "hdfs" ? "hdfs:///path" : "objstore://container/path",
    },
    ...(type === "hdfs" ? [] : LOGIN),
    DESCRIPTION,
  ];
  const act = ({ "credentials.user": user, "credentials.password": password, ...body }, key) => {
    if (body.type !== "hdfs" && (user || password)) body.credentials = { user, password };
    return make(["data-sources"], "data_source", body, key);
  };
  const done = () => (location.hash = to(["jobs"], { show: "sources" }));
  return html`
    <${Form} name="source" title="New data source" verb="Create the data source" first=${FIRST} fields=${fields}
      act=${act} done=${done} command=${addSource} />`;
}

// A free name for a job like another one: count, count-2, count-3.
function another(name) {
  const taken = new Set([...store.job.values()].map((each) => each.name));
  const [, stem] = /^(.*?)(?:-\d+)?$/s.exec(name);
  let n = 2;
  while (taken.has(`${stem.slice(0, 45)}-${n}`)) n += 1;
  return `${stem.slice(0, 45)}-${n}`;
}

// The binaries of a new job: those of the project, and files that are uploaded now. chosen: ids.
export function Choices({ chosen, change, busy }) {
  const choose = (id, on, old) => change((before) => {
    const others = before.filter((each) => each !== id && each !== old?.id);
    return on ? [...others, id] : others;
  });
  const check = ({ id, name }) => html`
    <${Check} key=${id} text=${html`<${Name}>${name}<//>`} on=${chosen.includes(id)} change=${(on) => choose(id, on)} />`;
  return html`
    <div class="choices">${newestFirst(store.job_binary.values()).slice(0, ROWS).map(check)}</div>
    <${Drop} done=${(made, old) => choose(made.id, true, old)} busy=${busy} />`;
}

// What follows from the main binaries: the type of the first one, if its name tells it.
function typed(mains) {
  const type = ENDINGS[store.job_binary.get(mains[0])?.name.split(".").pop()];
  return type ? { type } : {};
}

function binaries(name, label) {
  const chosen = (of) => (before) => {
    const ids = of(before[name]);
    return { [name]: ids, ...(name === "mains" && typed(ids)) };
  };
  const draw = ({ values, change }) => html`
    <${Choices} chosen=${values[name]} change=${(of) => change(chosen(of))} />`;
  return { name, label, draw };
}

// like: a job whose values the form begins with. svcd cannot change a job: its runs refer to it.
function NewJob({ like }) {
  const fields = () => [
    NAME,
    { name: "type", label: "Type", options: TYPES.map((each) => [each, each]) },
    DESCRIPTION,
    binaries("mains", "Main binaries: what the job starts"),
    binaries("libs", "Libraries"),
  ];
  const ids = (rows) => rows?.map((each) => each.id) ?? [];
  const first = {
    name: like ? another(like.name) : "",
    type: like?.type ?? "Pig",
    description: like?.description ?? "",
    mains: ids(like?.mains),
    libs: ids(like?.libs),
  };
  const names = (of) => of.map((id) => store.job_binary.get(id)?.name ?? id);
  // It runs next, with the cluster, data and options of the other job.
  const done = (job) => {
    const last = like && lastRuns().get(like.id);
    location.hash = to(["jobs", job.id], last && { run: "1", like: last.id });
  };
  const command = (values) => addJob({ ...values, mains: names(values.mains), libs: names(values.libs) });
  return html`
    <${Form} name=${`job ${like?.id}`} verb="Create the job" first=${first} fields=${fields} command=${command}
      title=${like ? html`New job like <bdi>${plain(like.name)}</bdi>` : "New job"}
      act=${(values, key) => make(["jobs"], "job", values, key)}
      done=${done} />`;
}

const NewBinary = () => html`<section class="sheet">
  <h2>New binaries</h2>
  <${Drop} done=${() => {}} />
  <${Command} text=${addBinary("FILE", "FILE")} />
</section>`;

const NEW = { jobs: NewJob, sources: NewSource, binaries: NewBinary };

// Job -> its newest run.
function lastRuns() {
  const last = new Map();
  for (const run of store.job_execution.values()) {
    if (!(last.get(run.job_id)?.created_at > run.created_at)) last.set(run.job_id, run);
  }
  return last;
}

// The rows that have the text of the filter. of: one of KINDS; remove(row): asks before the deletion.
function List({ of, rows, query, remove }) {
  const wanted = (query.q ?? "").toLowerCase();
  const found = rows.filter(({ name, type, url }) => `${name} ${type ?? ""} ${url ?? ""}`.toLowerCase().includes(wanted));
  const last = of.word ? null : lastRuns();
  const side = (at) => (at > of.columns.length - 3 ? "wide" : "");
  const titles = Object.fromEntries(of.columns.map(([title], at) => [title, side(at)]));
  const row = (each) => html`<tr key=${each.id}>
    <th scope="row">${of.word ? html`<${Name}>${each.name}<//>` : html`<${Link} view="jobs" ...${each} />`}</th>
    ${of.columns.map(([title, draw], at) => html`<td key=${title} class=${side(at)}>${draw(each, last)}</td>`)}
    ${of.word && html`<td class="amount">
      <button type="button" class="small" aria-label=${`Delete ${plain(each.name)}`} onClick=${() => remove(each)}>Delete</button>
    </td>`}
  </tr>`;
  return html`
    <${Filters}><${Search} text=${`Find a ${of.one}`} of="q" query=${query} /><//>
    <${Found} one=${of.one} number=${found.length} most=${ROWS}>
      <${Table} columns=${{ Name: "", ...titles, ...(of.word && { Action: "unseen" }) }}>${found.slice(0, ROWS).map(row)}<//>
    <//>`;
}

const Tab = ({ name, title, kind, current }) => html`
  <a href=${to(["jobs"], { show: name })} aria-current=${current ? "page" : undefined}>
    ${title} <span class="number">${store[kind].size}</span>
  </a>`;

export function Jobs({ query }) {
  useStore();
  const [removed, remove] = useState(null);
  const show = query.show in KINDS ? query.show : "jobs";
  const of = KINDS[show];
  const rows = newestFirst(store[of.kind].values());
  const New = query.new && NEW[show];
  const none = html`
    <${Empty} title=${`No ${of.title.toLowerCase()} yet`}>
      <p>A job is a program of some binaries. It reads and writes data sources.</p>
    <//>`;
  return html`
    <${Head} title=${of.title} class="unseen">
      <nav class="tabs" aria-label="Kinds">${Object.entries(KINDS).map(([key, each]) => html`
        <${Tab} key=${key} name=${key} current=${key === show} ...${each} />`)}
      </nav>
      <a class="button" href=${to(["jobs"], { show, new: New ? "" : "1" })}>${New ? "Close the form" : `New ${of.one}`}</a>
    <//>
    ${New && html`<${New} key=${`${show} ${query.like}`} like=${store.job.get(query.like)} />`}
    ${rows.length ? html`<${List} of=${of} rows=${rows} query=${query} remove=${remove} />` : !New && none}
    ${removed && html`<${Remove} of=${of} row=${removed} close=${() => remove(null)} />`}`;
}

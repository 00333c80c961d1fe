// The form that runs a program: a file that is dropped, a binary or a job.
import { useRef, useState } from "./hooks.js";
import { html } from "./html.js";
import { get, path } from "./api.js";
import { runJob } from "./commands.js";
import { Form } from "./forms.js";
import { useRead } from "./images.js";
import { ROWS } from "./job_parts.js";
import { Choices, LOGIN, TYPES } from "./jobs.js";
import { Head } from "./parts.js";
import { newestFirst } from "./records.js";
import { to } from "./route.js";
import { Accepted, CONFIGS, Hints, Places, Program, Steps } from "./run_parts.js";
import { configsOf, MAIN_CLASS, perform, placeType, proposal, sourceNamed, typeOf } from "./run_steps.js";
import { store, useStore } from "./store.js";

const MASK = "***";
const BOTH = ["params", "args"];
const USES = { Jar: [], MapReduce: [], Java: ["args"] }; // what jobs of a type take beside options; other types: BOTH
const PLACE = "a data source, hdfs:///folder or objstore://container/folder";
const PARAMS = "job_configs.params";
const ARGS = "job_configs.args";

// {a: "b"} -> "a=b" on each line. A value that the API has masked is left out.
function typed(values) {
  const known = Object.entries(values ?? {}).filter(([, value]) => value !== MASK);
  return known.map((pair) => pair.join("=")).join("\n");
}

// What the values mean: job: the existing one, if any; files: as the command names them; guess: the type by the name.
function meant(values) {
  const job = store.job.get(values.program);
  const rows = job ? [...job.mains, ...job.libs] : [values.program, ...values.libs].map((id) => store.job_binary.get(id));
  const files = rows.filter(Boolean).map((each) => each.file_name ?? each.name);
  const file = files[0] ?? "";
  const guess = file && typeOf(file, values.isScript);
  return { ...values, job, files, file, guess, type: job?.type ?? (values.type || guess) };
}

// The values that the form begins with. like: an execution that has them, if any.
function firstOf({ job, like, cluster }, clusters) {
  const given = like?.job_configs ?? {};
  const { [MAIN_CLASS]: main = "", ...configs } = given.configs ?? {};
  const name = (id) => store.data_source.get(id)?.name ?? "";
  return {
    program: job?.id ?? "",
    isScript: false,
    main,
    type: "",
    cluster_id: (clusters.find(({ id }) => id === (like?.cluster_id ?? cluster)) ?? (clusters[1] ? {} : clusters[0]))?.id ?? "",
    input_id: name(like?.input_id),
    output_id: job && !like ? proposal(job.name, job.type) : name(like?.output_id),
    "credentials.user": "",
    "credentials.password": "",
    libs: [],
    [CONFIGS]: typed(configs),
    [PARAMS]: typed(given.params),
    [ARGS]: Object.values(given.args ?? {}).filter((each) => each !== MASK).join("\n"),
    description: "",
  };
}

// The values after another program is chosen: an output that nobody has typed changes with it.
const chosen = (program, isScript = false) => (before) => {
  const { job, file, type } = meant({ ...before, program, isScript });
  const proposed = file && proposal(job?.name ?? file, type);
  const isTyped = before.output_id && before.output_id !== before.proposed;
  return { program, isScript, proposed, output_id: isTyped ? before.output_id : proposed };
};

async function read() {
  const [{ cluster_templates: templates }, { images }] = await Promise.all([get(path("cluster-templates")), get(path("images"))]);
  return { templates, images };
}

const clusterOption = ({ id, name, status }) => [id, status === "Active" ? name : `${name}: ${status}, the run waits for it`];

// New clusters: of each template, with each image if it has none. [id and image, text, name, image]
function newClusters({ templates, images }) {
  const of = ({ id, name }, image) => {
    const text = `a new one of ${name}${image ? `, ${image.name}` : ""}, deleted after the run`;
    return [image ? `${id} ${image.id}` : id, text, name, image?.name];
  };
  return templates.flatMap((each) => (each.default_image_id ? [of(each)] : images.map((image) => of(each, image))));
}

// job: given by the page; like: an execution whose values the form begins with; cluster: the id of the chosen one.
export function RunForm({ job: given, like, cluster }) {
  const { data, wait } = useRead(read);
  const [uploads, setUploads] = useState(0);
  const [steps, tell] = useState([]);
  const made = useRef(new Map()); // data sources
  const usable = newestFirst(store.cluster.values()).filter((each) => !["Error", "Deleting"].includes(each.status));
  const first = firstOf({ job: given, like, cluster }, usable);
  const fresh = data ? newClusters(data) : [];
  const clusters = usable.filter(({ id }, at) => at < ROWS || id === first.cluster_id).map(clusterOption);
  const busy = (n) => setUploads((sum) => sum + n);
  // The command line takes a name, too, which a file of the computer may have; a URL has no login.
  const placeOf = (text) => {
    const source = sourceNamed(text);
    return source?.type === "hdfs" ? source.url : text;
  };
  const command = (values, input = placeOf(values.input_id)) => {
    const { job, files } = meant(values);
    const [, , template, image] = fresh.find(([id]) => id === values.cluster_id) ?? [];
    const on = store.cluster.get(values.cluster_id)?.name;
    const places = { input, output: placeOf(values.output_id) };
    return runJob({ ...configsOf(values), ...places, type: job?.type ?? values.type, files, cluster: on, template, image });
  };
  const fields = (now) => {
    const { job, file, type, guess, input_id: input, output_id: output } = meant(now);
    const uses = USES[type] ?? BOTH;
    const login = [input, output].some((each) => placeType(each) === "objstore" && !sourceNamed(each));
    const types = [["", guess ? `${guess}, by the name of the file` : "choose…"], ...TYPES.map((each) => [each, each])];
    const program = ({ values, change }) => html`
      <${Program} value=${values.program} choose=${(...choice) => change(chosen(...choice))} busy=${busy} />`;
    const libs = ({ values, change }) => html`
      <${Choices} chosen=${values.libs} change=${(of) => change((before) => ({ libs: of(before.libs) }))} busy=${busy} />`;
    const hints = (form) => html`<${Hints} type=${type} form=${form} />`;
    const local = ({ values }) => html`<${Places} command=${command(values, "PATH")} />`;
    return [
      !given && { name: "program", label: "Program", draw: program },
      !job && file && { name: "type", label: "Type", options: types, more: Boolean(guess) },
      uses[0] && /\.jar$/i.test(file) && { name: "main", label: "Main class", placeholder: "org.example.Count" },
      { name: "cluster_id", label: "Cluster", options: [["", "choose…"], ...clusters, ...fresh], hint: !data && wait },
      { name: "input_id", label: "Input", list: "places", placeholder: PLACE, advice: local },
      { name: "output_id", label: "Output, which must not exist yet", list: "places", placeholder: PLACE },
      ...(login ? LOGIN : []),
      !job && { name: "libs", label: "Libraries", more: true, draw: libs },
      uses.includes("args") && { name: ARGS, label: "Arguments, one on a line", lines: 2, more: true },
      uses.includes("params") && { name: PARAMS, label: "Parameters: NAME=VALUE, one on a line", lines: 2, more: true },
      { name: CONFIGS, label: "Options: NAME=VALUE, one on a line", lines: 3, more: true, advice: hints },
      !job && { name: "description", label: "Description", more: true },
    ].filter(Boolean);
  };
  const send = (dry) => (values, key) => {
    const all = meant(values);
    return perform(all, { file: all.file, templates: data?.templates ?? [], dry, key, tell, made: made.current });
  };
  return html`
    <${Form} name=${`run ${given?.id} ${like?.id} ${cluster}`} title=${given ? "Run it" : "Run a program"}
      verb=${given ? "Run the job" : "Run the program"} first=${first} fields=${fields} command=${command}
      wait=${uploads > 0 && "Uploading…"} progress=${html`<${Steps} steps=${steps} />`}
      check=${async (...all) => html`<${Accepted} plan=${await send(true)(...all)} />`}
      act=${send()} done=${(run) => (location.hash = to(["runs", run.id]))} />`;
}

export function RunProgram({ query }) {
  const { loaded } = useStore();
  return html`<${Head} title="Run a program" class="unseen" />
    ${loaded && html`<${RunForm} key=${query.cluster} cluster=${query.cluster} />`}`;
}

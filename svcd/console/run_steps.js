// What running a program makes, one after the other: its job, the data sources, and the run. What is there already is
// not made again.
import { ApiError, call, path } from "./api.js";
import { ENDINGS, make } from "./job_parts.js";
import { digestOf, reused, slug, split, sumOf, withDigest } from "./reuse.js";
import { store } from "./store.js";
import { now } from "./time.js";

export const MAIN_CLASS = "edp.java.main_class";
const LIBRARY = ["Jar", "MapReduce", "Java"]; // types whose program is a library
const NEEDY = ["Pig", "Jar", "MapReduce"]; // types that need input and output
const FREE = ["Shell", "Java"]; // types whose program gets no input and output

// The type of a program, as `svcd run` decides; "" if its name does not tell it.
// isScript: whether its first line names what starts it.
export function typeOf(file, isScript) {
  const ending = split(file)[1]?.slice(1).toLowerCase();
  return { jar: "Java", ...ENDINGS }[ending] ?? (isScript ? "Shell" : "");
}

// An output that does not exist yet.
export function proposal(file, type) {
  const stamp = new Date(now()).toISOString().slice(0, 19).replace(/\D/g, "");
  return FREE.includes(type) ? "" : `hdfs:///out/${slug(split(file)[0])}-${stamp}`;
}

const lines = (text) => text.split("\n").filter(Boolean);

// "a=b" on each line -> {a: "b"}.
function pairs(text) {
  const parts = lines(text).map((line) => line.split(/=(.*)/s));
  return Object.fromEntries(parts.map(([name, value = ""]) => [name, value]));
}

export function configsOf({ main, "job_configs.configs": configs, "job_configs.params": params, "job_configs.args": args }) {
  return {
    configs: { ...pairs(configs), ...(main && { [MAIN_CLASS]: main }) },
    params: pairs(params),
    args: lines(args),
  };
}

const wrong = (field, text) => new ApiError(400, "", `$.${field}: ${text}`);

// The type of a place that is a URL.
export const placeType = (text) => /^(hdfs(?=:\/\/.*[^/])|objstore(?=:\/\/[^/]+\/.))/.exec(text.trim())?.[0];

const find = (fits) => [...store.data_source.values()].find(fits);

export const sourceNamed = (text) => find((each) => each.name === text.trim());

// The data source of a field, which has its name or a URL. Without a user any source of the URL is the same.
// made: those that this form has made; the API may hide their logins.
async function sourceOf(field, { [field]: given, "credentials.user": user, "credentials.password": password }, key, made) {
  const url = given.trim();
  const type = placeType(url);
  const login = type === "objstore" && (user || password);
  const isMine = ({ credentials: has }) => !login || (has.user === user && has.password === password);
  const own = JSON.stringify([url, user, password]);
  const known = sourceNamed(url) ?? made.get(own) ?? find((each) => each.type === type && each.url === url && isMine(each));
  if (known) return known;
  const end = (await sumOf(new TextEncoder().encode(key + url))).slice(0, 8);
  const name = `${slug(url.replace(/\/+$/, "").split("/").pop(), 41)}-${end}`;
  const body = { name, type, url, ...(login && { credentials: { user, password } }) };
  made.set(own, await make(["data-sources"], "data_source", body, `${key}-${field}`));
  return made.get(own);
}

// Refuse a place that is missing or none, before anything is made.
function checkPlace(field, text, type) {
  if (!text && NEEDY.includes(type)) throw wrong(field, "is missing");
  if (text && !placeType(text) && !sourceNamed(text)) {
    throw wrong(field, "expected the name of a data source, hdfs:///PATH or objstore://CONTAINER/PATH");
  }
}

// The job of a program: an existing one, or one of a binary and libraries.
async function jobOf({ program, type, libs, description }, file, key) {
  const job = store.job.get(program);
  if (job) return job;
  const ids = LIBRARY.includes(type) ? { mains: [], libs: [program, ...libs] } : { mains: [program], libs };
  const contentOf = (of, mains, others) => [of, ...mains, "", ...others];
  const content = contentOf(type, ids.mains, ids.libs);
  const idsOf = (rows) => rows.map((each) => each.id);
  const same = (row) => `${contentOf(row.type, idsOf(row.mains), idsOf(row.libs))}` === `${content}`;
  const name = slug(split(file)[0]);
  const own = withDigest(name, await digestOf(content));
  return reused("job", [name, own], same, (free) => ({ name: free, type, description, ...ids }), key);
}

// The place to run: a cluster, or a new one of a template and an image.
function clusterOf(id, templates, key) {
  if (!id) throw wrong("cluster_id", "choose a cluster");
  const [of, image] = id.split(" ");
  const template = templates.find((each) => each.id === of);
  if (!template && !store.cluster.has(id)) throw wrong("cluster_id", "the cluster is gone: choose another");
  if (!template) return { cluster_id: id };
  const { plugin_name, engine_version } = template;
  const cluster = { name: `run-${key.slice(0, 8)}`, plugin_name, engine_version, cluster_template_id: of };
  return { cluster: image ? { ...cluster, default_image_id: image } : cluster };
}

// The refusal of a step with the names of the form's fields.
function renamed({ status, name, message }, field) {
  const text = message
    .replace(/\$\.(mains|libs)(\[\d+\])?/g, "$.program")
    .replace(/\$\.url/g, `$.${field}`)
    .replace(/\$\.job_configs\.configs(?=.*java\.main_class)/g, "$.main")
    .replace(/\$\.cluster\b/g, "$.cluster_id");
  return new ApiError(status, name, text);
}

// Make the steps. tell([[title, state], …]): after each change. dry: only ask whether svcd would run it.
export async function perform(values, { file, templates, dry, key, tell, made }) {
  if (!store.job.get(values.program) && !store.job_binary.get(values.program)) throw wrong("program", "choose a program");
  if (!values.type) throw wrong("type", "choose the type: the name of the file does not tell it");
  const place = clusterOf(values.cluster_id, templates, key);
  for (const field of ["input_id", "output_id"]) checkPlace(field, values[field].trim(), values.type);
  const steps = [];
  const step = async (title, field, act) => {
    const own = [title, "started"];
    steps.push(own);
    tell([...steps]);
    try {
      const answer = await act();
      steps.splice(-1, 1, [`${title} ${answer.name ?? ""}`, "done"]);
      return answer;
    } catch (error) {
      own[1] = "failed";
      throw renamed(error, field);
    } finally {
      tell([...steps]);
    }
  };
  const job = await step("Job", "program", () => jobOf(values, file, key));
  const body = { ...place, job_configs: configsOf(values) };
  for (const field of ["input_id", "output_id"]) {
    if (!values[field].trim()) continue;
    const title = field === "input_id" ? "Input" : "Output";
    body[field] = (await step(title, field, () => sourceOf(field, values, key, made))).id;
  }
  const list = ["jobs", job.id, "execute"];
  if (dry) return step("Check", "", async () => (await call("POST", `${path(...list)}?dry_run=true`, { body })).plan);
  return step("Run", "", () => make(list, "job_execution", body, `${key}-execute`));
}

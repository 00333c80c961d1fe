// The svcd commands that do the same as the page. Pure.
import { quoted } from "./text.js";

export const deleteCluster = (cluster) => `svcd cluster rm ${quoted(cluster.name)}`;
export const retryCluster = (cluster) => `svcd cluster retry ${quoted(cluster.name)}`;
export const scaleCluster = (cluster, sizes) =>
  `svcd cluster scale ${quoted(cluster.name)}${sizes.map(({ name, count }) => ` ${quoted(name)}=${count}`).join("")}`;
export const why = (id) => `svcd why ${id}`;
export const cancelRun = (id) => `svcd job cancel ${id}`;
export const rerun = (id) => `svcd job rerun ${id}`;
export const followLog = (id, all) => `svcd job logs ${id} -f${all ? " --all" : ""}`;
export const newCluster = "svcd cluster create NAME --plugin vanilla --workers 3 --image IMAGE --keypair KEYPAIR";
export const newRun = "svcd run FILE --on CLUSTER";

const option = (name, value) => (value ? ` ${name} ${quoted(value)}` : "");
const pairs = (name, values) => Object.entries(values).map(([key, value]) => option(name, `${key}=${value}`)).join("");

export const word = quoted;
export const request = (method, path) => `curl -X ${method} -H "X-Auth-Token: $OS_TOKEN" ${quoted(location.origin + path)}`;
export const addBinary = (file, name) => `svcd binary add ${quoted(file)}${name === file ? "" : option("--name", name)}`;
export const addSource = ({ name, url, "credentials.user": user, description }) =>
  `svcd source add ${quoted(name || "NAME")} ${quoted(url || "URL")}${option("--user", user)}${option("--description", description)}`;
export const addJob = (job) => `echo ${quoted(JSON.stringify({ jobs: [job] }))} | svcd apply -f -`;
// files: the first is the program, the others its libraries; input, output, cluster: names.
export const runJob = ({ files, type, cluster, input, output, configs, params, args }) =>
  `svcd run ${quoted(files[0] ?? "FILE")}${option("--on", cluster || "CLUSTER")}${option("--type", type)}${files.slice(1).map((each) => option("--lib", each)).join("")}` +
  option("--input", input) + option("--output", output) + pairs("-c", configs) + pairs("-p", params) + (args.length ? ` -- ${args.map(quoted).join(" ")}` : "");

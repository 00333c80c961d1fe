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

const each = (name, values) => values.map((value) => option(name, value)).join("");

// usual: the groups that the command makes of a plugin. A request that its options cannot say is given as a file.
export function createCluster(body, usual) {
  const { name, cluster_template_id: template, default_image_id: image, user_keypair_id: keypair, node_groups: groups } = body;
  const like = usual.map((one, at) => (at && groups?.[1] ? { ...one, count: groups[1].count } : one)).map((one) => ({ ...one, flavor_id: groups?.[0].flavor_id }));
  const plugin = !template && JSON.stringify(groups) === JSON.stringify(like);
  if (!image || !keypair || (groups && !plugin)) return `svcd cluster create -f - <<'END'\n${JSON.stringify(body, null, 1)}\nEND`;
  const configs = Object.entries(body.cluster_configs ?? {}).flatMap(([target, named]) => Object.entries(named).map(([key, value]) => `${target}.${key}=${value}`));
  const made = plugin ? option("--plugin", body.plugin_name) + option("--plugin-version", body.engine_version) + option("--workers", groups[1].count) + option("--flavor", groups[0].flavor_id) : option("--template", template);
  return `svcd cluster create ${quoted(name || "NAME")}${made}${option("--image", image)}${option("--keypair", keypair)}${option("--network", body.neutron_management_network)}${option("--description", body.description)}${each("--set", configs)}`;
}
export const createRequest = (address, body) => `curl ${quoted(address)} -H "X-Auth-Token: $TOKEN" -H 'Content-Type: application/json' -d ${quoted(JSON.stringify(body, null, 1))}`;
// gone: tags to remove.
export const registerImage = ({ id, username, description }, tags, gone) =>
  `svcd image register ${quoted(id || "IMAGE")}${option("--user", username || "LOGIN")}${option("--description", description)}${each("--tag", tags)}${gone.length ? ` && svcd image untag ${[id, ...gone].map(quoted).join(" ")}` : ""}`;

// The svcd commands that do the same as the page. Pure.
import { quoted } from "./text.js";

const option = (name, value) => (value ? ` ${name} ${quoted(value)}` : "");
const repeated = (name, values) => values.map((value) => option(name, value)).join("");
const pairs = (name, values) => repeated(name, Object.entries(values).map(([key, value]) => `${key}=${value}`));

export const newCluster = (plugin) => `svcd cluster create NAME --plugin ${quoted(plugin)} --workers 2`;
export const deleteCluster = (cluster) => `svcd cluster rm ${quoted(cluster.name)}`;
export const keepCluster = (cluster) => `svcd cluster keep ${quoted(cluster.name)}`;
export const retryCluster = (cluster) => `svcd cluster retry ${quoted(cluster.name)}`;
export function scaleCluster(cluster, sizes) {
  const groups = sizes.map(({ name, count }) => ` ${quoted(name)}=${count}`);
  return `svcd cluster scale ${quoted(cluster.name)}${groups.join("")}`;
}
export const tunnel = (name, part) => `svcd tunnel ${quoted(name)}${part ? ` ${quoted(part)}` : ""}`;

export const newRun = "svcd run FILE --on CLUSTER";
export const why = (id) => `svcd why ${id}`;
export const cancelRun = (id) => `svcd job cancel ${id}`;
export const rerun = (id) => `svcd job rerun ${id}`;
export const readLog = (id, { ended, all }) => `svcd job logs ${id}${ended ? "" : " -f"}${all ? " --all" : ""}`;

export const remove = (verb, name) => `svcd ${verb} ${quoted(name)}`;
export function addBinary(file, name) {
  return `svcd binary add ${quoted(file)}${name === file ? "" : option("--name", name)}`;
}
export function addSource({ name, url, "credentials.user": user, description }) {
  const options = option("--user", user) + option("--description", description);
  return `svcd source add ${quoted(name || "NAME")} ${quoted(url || "URL")}${options}`;
}
export const addJob = (job) => `echo ${quoted(JSON.stringify({ jobs: [job] }))} | svcd apply -f -`;

// files: the first is the program, the others its libraries; input, output, cluster: names; template, image: of a new
// cluster, in place of a cluster.
export function runJob({ files, type, cluster, template, image, input, output, configs, params, args }) {
  return [
    `svcd run ${quoted(files[0] ?? "FILE")}`,
    template ? option("--transient", template) : option("--on", cluster || "CLUSTER"),
    option("--image", image),
    option("--type", type),
    repeated("--lib", files.slice(1)),
    option("--input", input),
    option("--output", output),
    pairs("-c", configs),
    pairs("-p", params),
    args.length ? ` -- ${args.map(quoted).join(" ")}` : "",
  ].join("");
}

// Whether the groups are those that the command makes of a plugin, but for the number of workers and the flavor.
function isUsual(groups, usual) {
  const like = usual.map((one, at) => ({
    ...one,
    ...(at && groups?.[1] && { count: groups[1].count }),
    flavor_id: groups?.[0].flavor_id,
  }));
  return JSON.stringify(groups) === JSON.stringify(like);
}

// A time as an option has it; the form offers whole hours.
const lengthOf = (s) => (s ? `${s / 3600}h` : s === 0 && "never");

// usual: the groups that the command makes of a plugin. A request that its options cannot say is given as a file.
export function createCluster(body, usual) {
  const { cluster_template_id: template, node_groups: groups } = body;
  const { name, default_image_id: image, user_keypair_id: keypair, neutron_management_network: network } = body;
  const ofPlugin = !template && isUsual(groups, usual);
  if (!image || !keypair || (groups && !ofPlugin)) {
    return `svcd cluster create -f - <<'END'\n${JSON.stringify(body, null, 1)}\nEND`;
  }
  const plugin = () => [
    option("--plugin", body.plugin_name),
    option("--plugin-version", body.engine_version),
    option("--workers", groups[1].count),
    option("--flavor", groups[0].flavor_id),
  ];
  const configs = Object.entries(body.cluster_configs ?? {}).flatMap(([target, named]) =>
    Object.entries(named).map(([key, value]) => `${target}.${key}=${value}`));
  return [
    `svcd cluster create ${quoted(name || "NAME")}`,
    ...(ofPlugin ? plugin() : [option("--template", template)]),
    option("--image", image),
    option("--keypair", keypair),
    option("--network", network),
    option("--description", body.description),
    option("--idle-delete", lengthOf(body.idle_delete_s)),
    option("--max-age", lengthOf(body.max_age_s)),
    repeated("--set", configs),
  ].join("");
}
export function createRequest(address, body) {
  const headers = `-H "X-Auth-Token: $TOKEN" -H 'Content-Type: application/json'`;
  return `curl ${quoted(address)} ${headers} -d ${quoted(JSON.stringify(body, null, 1))}`;
}

// gone: tags to remove.
export function registerImage({ id, username, description }, tags, gone) {
  const options = [
    option("--user", username || "LOGIN"),
    option("--description", description),
    repeated("--tag", tags),
  ];
  const untag = gone.length ? ` && svcd image untag ${[id, ...gone].map(quoted).join(" ")}` : "";
  return `svcd image register ${quoted(id || "IMAGE")}${options.join("")}${untag}`;
}

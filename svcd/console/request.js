// The request for a new cluster, made of what a person typed. Pure.
//
// Note: choices. The API lists no flavors, key pairs and networks. But its refusal of unknown ones
// names up to ten of each, so the page asks for a dry run of UNKNOWN.

export const UNKNOWN = { name: "x", plugin_name: "?", engine_version: "?", default_image_id: "?", user_keypair_id: "?", neutron_management_network: "?", node_groups: [{ name: "x", count: 1, flavor_id: "?", node_processes: ["?"] }] };
const WORKER = /^(datanode|nodemanager)$/;
const LEFT_OUT = /^(secondarynamenode|sparkhistory|sparkconnect)$/;

// The choices for a field, as [id, name], that the refusal of UNKNOWN names.
export function choices(refusal, field) {
  const [, named = "none"] = new RegExp(`\\.${field}: .*; available: (.*)`).exec(refusal) ?? [];
  return named === "none" ? [] : named.replace(/ and \d+ more$/, "").split(", ").map((each) => (/(.*?) \((.*)\)/.exec(each) ?? [each, each, each]).slice(1));
}

// The groups of a small cluster, as `svcd cluster create --plugin` lays them out.
export function layout(services = {}) {
  const all = Object.values(services).flat();
  const group = (name, count, of) => ({ name, count, flavor_id: "", node_processes: all.filter(of) });
  return [group("master", 1, (each) => !WORKER.test(each) && !LEFT_OUT.test(each)), group("worker", 2, (each) => WORKER.test(each))];
}

const idOf = (typed, known) => known.find((each) => each.includes(typed))?.[0] ?? typed;
// Other texts stay texts: the API says what is wrong with them.
const value = (text) => (/^(true|false|0|[1-9]\d{0,14})$/.test(text) ? JSON.parse(text) : text);

// "HDFS.dfs.replication=2" on each line -> {HDFS: {"dfs.replication": 2}}.
export function configs(text) {
  const found = {};
  for (const [, target, name, typed] of text.matchAll(/^ *([^.=\n]+)\.?([^=\n]*)=?(.*)$/gm)) (found[target] ??= {})[name] = value(typed);
  return found;
}

// The body of POST clusters. groups: undefined for those of the template. Empty fields are left out.
export function bodyOf({ node_groups: _, cluster_configs: lines, neutron_management_network: network, ...values }, { plugin_name, engine_version, id }, groups, known) {
  const body = { ...values, plugin_name, engine_version, cluster_template_id: id, neutron_management_network: idOf(network, known.neutron_management_network), cluster_configs: lines && configs(lines),
    node_groups: groups?.map((each) => ({ ...each, count: value(`${each.count}`), flavor_id: idOf(each.flavor_id, known.flavor_id) })) };
  return { name: "", ...Object.fromEntries(Object.entries(body).filter(([, each]) => each)) };
}

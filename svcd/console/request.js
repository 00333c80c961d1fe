// The request for a new cluster, made of what a person typed. Pure.
const WORKER = /^(datanode|nodemanager)$/;
const LEFT_OUT = /^(secondarynamenode|sparkhistory|sparkconnect)$/;

export const SIZES = [["Small", 2], ["Medium", 5], ["Large", 20]]; // workers

// The groups of a cluster, as `svcd cluster create --plugin --workers` lays them out.
export function layout(services = {}, flavor = "", workers = 2) {
  const all = Object.values(services).flat();
  const group = (name, count, of) => ({ name, count, flavor_id: flavor, node_processes: all.filter(of) });
  return [
    group("master", 1, (each) => !WORKER.test(each) && !LEFT_OUT.test(each)),
    group("worker", workers, (each) => WORKER.test(each)),
  ];
}

// Other texts stay texts: the API says what is wrong with them.
const value = (text) => (/^(true|false|0|[1-9]\d{0,14})$/.test(text) ? JSON.parse(text) : text);

// "HDFS.dfs.replication=2" on each line -> {HDFS: {"dfs.replication": 2}}.
export function configs(text) {
  const found = {};
  for (const [, target, name, typed] of text.matchAll(/^ *([^.=\n]+)\.?([^=\n]*)=?(.*)$/gm)) {
    (found[target] ??= {})[name] = value(typed);
  }
  return found;
}

const filled = (values) => Object.fromEntries(Object.entries(values).filter(([, each]) => each || each === 0));

// The body of POST clusters. source: a version of a plugin or a template; groups: undefined for those of the template.
// Empty fields are left out.
export function bodyOf(typed, source, groups) {
  const { node_groups: _, cluster_configs: lines, ...values } = typed;
  const { plugin_name, engine_version, id } = source;
  const sized = ({ floating_ip_pool: pool, ...each }) => ({
    ...each,
    count: value(`${each.count}`),
    ...filled({ floating_ip_pool: pool }),
  });
  const given = {
    ...values,
    plugin_name,
    engine_version,
    cluster_template_id: id,
    cluster_configs: lines && configs(lines),
    idle_delete_s: value(typed.idle_delete_s),
    max_age_s: value(typed.max_age_s),
    node_groups: groups?.map(sized),
  };
  return { name: "", ...filled(given) };
}

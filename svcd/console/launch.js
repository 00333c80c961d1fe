// A new cluster: what a person types, with the plan of svcd beside it.
import { useRef } from "./hooks.js";
import { html } from "./html.js";
import { get, path, send } from "./api.js";
import { createCluster, createRequest } from "./commands.js";
import { Field, Form } from "./forms.js";
import { fits, lists, Options, useRead } from "./images.js";
import { Command, useTitle } from "./parts.js";
import { Plan } from "./plan.js";
import { bodyOf, choices, layout, UNKNOWN } from "./request.js";
import { to } from "./route.js";
import { keep } from "./store.js";
import { plain } from "./text.js";

const LISTED = ["flavor_id", "user_keypair_id", "neutron_management_network"];

// What clusters are made of: versions of plugins, and templates.
async function sources() {
  const [{ images, plugins }, { cluster_templates: templates }] = await Promise.all([lists(), get(path("cluster-templates"))]);
  const refusal = await send("POST", `${path("clusters")}?dry_run=true`, { body: UNKNOWN }).catch((error) => error.message);
  const made = templates.map((each) => ({ ...plugins.find((one) => one.plugin_name === each.plugin_name && one.engine_version === each.engine_version), ...each, label: `Template ${each.name}` }));
  return { images, all: [...plugins, ...made], known: Object.fromEntries(LISTED.map((each) => [each, choices(refusal, each)])) };
}

const groupsOf = (values, source) => values.node_groups[source.label] ?? source.node_groups?.map(({ node_group_template_id: _, ...each }) => each) ?? layout(source.node_processes);

// The groups of each source are kept, so that a change of the source loses nothing.
function Groups({ form: { values, faults, change }, source }) {
  const rows = groupsOf(values, source);
  const set = (after) => change({ node_groups: { ...values.node_groups, [source.label]: after } });
  const add = useRef(null);
  const remove = (group) => {
    set(rows.filter((each) => each !== group));
    add.current.focus();
  };
  const about = {}; // refusals by their place, for example "[0].count"
  for (const line of faults.node_groups ?? []) {
    const [, place = "", text = line] = /^(\[\d+\]\.\w+).*?: (.*)/.exec(line) ?? [];
    (about[place] ??= []).push(text);
  }
  const draw = (group, at) => {
    const put = (more) => set(rows.map((each) => (each === group ? { ...group, ...more } : each)));
    const field = (key, label, more) => html`<${Field} form=${{ faults: about, values: { [`[${at}].${key}`]: group[key] }, change: (after) => put({ [key]: Object.values(after)[0] }) }} field=${{ name: `[${at}].${key}`, label, ...more }} />`;
    const own = group.node_processes;
    const toggle = (each) => put({ node_processes: own.includes(each) ? own.filter((other) => other !== each) : [...own, each] });
    const processes = () => html`<div class="checks">${[...new Set([...Object.values(source.node_processes ?? {}).flat(), ...own])].map((each) => html`<label key=${each}><input type="checkbox" checked=${own.includes(each)} onChange=${() => toggle(each)} /> ${plain(each)}</label>`)}
      ${rows[1] && html`<button type="button" class="small push" aria-label=${`Remove group ${plain(group.name)}`} onClick=${() => remove(group)}>Remove</button>`}</div>`;
    return html`<div class="group" key=${at}><div class="trio">${field("name", "Group")}${field("count", "Machines", { inputmode: "numeric" })}${field("flavor_id", "Flavor", { list: "flavor_id" })}</div>${field("node_processes", "Processes", { draw: processes })}</div>`;
  };
  return html`${rows.map(draw)}${about[""] && html`<p class="fault">${plain(about[""].join("\n"))}</p>`}
    <button type="button" ref=${add} onClick=${() => set([...rows, { name: "", count: 1, flavor_id: rows[0].flavor_id, node_processes: [] }])}>Add a group</button>`;
}

function NewCluster({ images, all, known }) {
  const sourceOf = (values) => all.find((each) => each.label === values.cluster_template_id) ?? all[0];
  const body = (values) => {
    const source = sourceOf(values);
    return bodyOf(values, source, source.id ? values.node_groups[source.label] : groupsOf(values, source), known);
  };
  const fields = (values) => {
    const source = sourceOf(values);
    const [fitting, others] = [true, false].map((wanted) => images.filter((each) => fits(each, source) === wanted));
    const add = (form) => (option) => form.change((before) => ({ cluster_configs: `${before.cluster_configs.replace(/\n?$/, before.cluster_configs && "\n")}${option.applicable_target}.${option.name}=${option.default_value}` }));
    return [
      { name: "name", label: "Name", autofocus: true }, { name: "description", label: "Description" },
      { name: "cluster_template_id", label: "Made of", options: all.map(({ label }) => [label, label]) },
      { name: "default_image_id", label: "Image", options: [["", source.default_image_id ? "that of the template" : "choose an image"], ...fitting.map((each) => [each.id, each.name]), ...others.map((each) => [each.id, `${each.name} (lacks tags)`])], hint: html`<a href=${to(["images"])}>Images and their tags</a>` },
      { name: "user_keypair_id", label: "Key pair", list: "user_keypair_id" }, { name: "neutron_management_network", label: "Network", list: "neutron_management_network", placeholder: "the cloud's default" },
      { name: "groups", label: "Node groups", draw: (form) => html`<${Groups} form=${form} source=${source} />` },
      { name: "cluster_configs", label: "Options, one on a line", lines: 3, placeholder: "HDFS.dfs.replication=2", advice: (form) => html`<${Options} configs=${source.configs ?? []} choose=${add(form)} />` },
      { name: "plan", label: "Plan", draw: () => html`<${Plan} method="POST" address=${path("clusters")} body=${body(values)} /><details><summary>The request</summary><${Command} text=${createRequest(location.origin + path("clusters"), body(values))} /></details>` },
    ];
  };
  const only = (rows) => (rows.length === 1 ? rows[0] : []);
  const first = { name: "", description: "", cluster_template_id: all[0]?.label, default_image_id: only(images).id ?? "", user_keypair_id: only(known.user_keypair_id)[0] ?? "", neutron_management_network: "", node_groups: {}, cluster_configs: "" };
  const act = async (values, key) => (await (await send("POST", path("clusters"), { body: body(values), key })).json()).cluster;
  const done = (cluster) => {
    keep("cluster", cluster);
    location.hash = to(["clusters", cluster.id]);
  };
  return html`<div class="launch"><${Form} name="cluster" title="New cluster" first=${first} fields=${fields} verb="Create the cluster" act=${act} done=${done} command=${(values) => createCluster(body(values), layout(sourceOf(values).node_processes))} /></div>
    ${LISTED.map((each) => html`<datalist id=${each}>${known[each].map(([id, name]) => html`<option key=${id} value=${name} />`)}</datalist>`)}`;
}

export function Launch() {
  const { data, wait } = useRead(sources);
  useTitle("New cluster");
  return html`<h1 class="unseen">New cluster</h1>${data ? html`<${NewCluster} ...${data} />` : wait}`;
}

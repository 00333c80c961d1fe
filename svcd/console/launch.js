// A new cluster: what a person types, with the plan of svcd beside it.
import { useRef } from "./hooks.js";
import { html } from "./html.js";
import { call, get, path } from "./api.js";
import { createCluster, createRequest } from "./commands.js";
import { Field, Form } from "./forms.js";
import { fits, lists, Options, useRead } from "./images.js";
import { choicesOf, readOffer, sized, usualFlavor } from "./offer.js";
import { Command, Lines, Name, useTitle } from "./parts.js";
import { Plan } from "./plan.js";
import { bodyOf, layout } from "./request.js";
import { to } from "./route.js";
import { keep } from "./store.js";
import { plain } from "./text.js";

// What clusters are made of: versions of plugins, templates, and what the cloud offers.
async function sources() {
  const reads = [lists(), get(path("cluster-templates")), readOffer()];
  const [{ images, plugins }, { cluster_templates: templates }, offer] = await Promise.all(reads);
  const isOf = (a, b) => a.plugin_name === b.plugin_name && a.engine_version === b.engine_version;
  const made = templates.map((each) => ({
    ...plugins.find((plugin) => isOf(plugin, each)),
    ...each,
    label: `Template ${each.name}`,
  }));
  return { images, all: [...plugins, ...made], offer };
}

// A field of the cloud: a choice where the list is known, else its id is typed. value: what the field has, which may
// be of a template. empty: the text of no choice.
function choice(label, rows, value, empty) {
  if (!rows) return { label: `${label} (its id)`, placeholder: empty };
  const others = value && !rows.some(([id]) => id === value) ? [[value, value]] : [];
  return { label, options: [["", empty], ...others, ...rows] };
}

function groupsOf(values, source, flavor) {
  const ofTemplate = source.node_groups?.map(({ node_group_template_id: _, ...each }) => each);
  return values.node_groups[source.label] ?? ofTemplate ?? layout(source.node_processes, flavor);
}

// The refusals of groups by their place, for example "[0].count"; "" has those of no field.
function placedInGroups(lines = []) {
  const found = {};
  for (const line of lines) {
    const [, place = "", text = line] = /^(\[\d+\]\.\w+).*?: (.*)/.exec(line) ?? [];
    (found[place] ??= []).push(text);
  }
  return found;
}

// The fields of one group of machines, the one at `at`. put(more): changes it; faults: refusals by their place.
function Group({ group, at, known, flavors, pools, put, faults, remove }) {
  const field = (key, more) => {
    const name = `[${at}].${key}`;
    const form = { faults, values: { [name]: group[key] ?? "" }, change: (after) => put({ [key]: after[name] }) };
    return html`<${Field} form=${form} field=${{ name, ...more }} />`;
  };
  const own = group.node_processes;
  const toggle = (each) => (own.includes(each) ? own.filter((other) => other !== each) : [...own, each]);
  const check = (each) => html`<label key=${each}>
    <input type="checkbox" checked=${own.includes(each)} onChange=${() => put({ node_processes: toggle(each) })} />${" "}
    ${plain(each)}
  </label>`;
  const pool = group.floating_ip_pool;
  return html`<fieldset class="group">
    <legend>Group <${Name}>${group.name || at + 1}<//></legend>
    <div class="trio">
      ${field("name", { label: "Name of the group" })}
      ${field("count", { label: "Machines", inputmode: "numeric" })}
      ${(pools[0] || pool) && field("floating_ip_pool", choice("Public addresses", pools, pool, "none"))}
    </div>
    ${field("flavor_id", choice("Flavor", flavors, group.flavor_id, "choose a flavor"))}
    ${field("node_processes", { label: "Processes", draw: () => html`<div class="checks">${known.map(check)}</div>` })}
    ${remove && html`<div class="buttons">
      <button type="button" class="small" aria-label=${`Remove group ${plain(group.name)}`} onClick=${remove}>
        Remove the group
      </button>
    </div>`}
  </fieldset>`;
}

// The groups of each source are kept, so that a change of the source loses nothing.
function Groups({ form: { values, faults, change }, source, offer }) {
  const usual = usualFlavor(offer.flavors);
  const rows = groupsOf(values, source, usual);
  const flavors = choicesOf(offer, "flavors", (each) => [each.id, sized(each)]);
  const pools = offer.networks.filter((each) => each.external).map((each) => [each.id, each.name]);
  const processes = Object.values(source.node_processes ?? {}).flat();
  const about = placedInGroups(faults.node_groups);
  const add = useRef(null);
  const set = (after) => change({ node_groups: { ...values.node_groups, [source.label]: after } });
  const remove = (group) => () => {
    set(rows.filter((each) => each !== group));
    add.current.focus();
  };
  const draw = (group, at) => html`
    <${Group} key=${at} at=${at} group=${group} flavors=${flavors} pools=${pools} faults=${about}
      known=${[...new Set([...processes, ...group.node_processes])]}
      put=${(more) => set(rows.map((each) => (each === group ? { ...group, ...more } : each)))}
      remove=${rows[1] && remove(group)} />`;
  const another = { name: "", count: 1, flavor_id: usual, node_processes: [] };
  return html`${rows.map(draw)}
    ${about[""] && html`<p class="fault">${plain(about[""].join("\n"))}</p>`}
    <button type="button" ref=${add} onClick=${() => set([...rows, another])}>Add a group</button>`;
}

// The text of no network: what svcd then does.
function anyNetwork(source, networks) {
  if (source.neutron_management_network) return "that of the template";
  return networks?.length > 1 ? "choose a network" : "the only one of the project";
}

// The plan of a dry run, and the request.
function Planned({ body }) {
  const address = path("clusters");
  return html`
    <${Plan} method="POST" address=${address} body=${body} />
    <details>
      <summary>The request</summary>
      <${Command} open text=${createRequest(location.origin + address, body)} />
    </details>`;
}

function NewCluster({ images, all, offer }) {
  const usual = usualFlavor(offer.flavors);
  const networks = choicesOf(offer, "networks", (each) => !each.external && [each.id, each.name])?.filter(Boolean);
  const keypairs = choicesOf(offer, "keypairs", (each) => [each, each]);
  const sourceOf = (values) => all.find((each) => each.label === values.cluster_template_id) ?? all[0];
  const body = (values) => {
    const source = sourceOf(values);
    return bodyOf(values, source, source.id ? values.node_groups[source.label] : groupsOf(values, source, usual));
  };
  const fields = (values) => {
    const source = sourceOf(values);
    const [fitting, others] = [true, false].map((wanted) => images.filter((each) => fits(each, source) === wanted));
    const line = (option) => `${option.applicable_target}.${option.name}=${option.default_value}`;
    const added = (option) => ({ cluster_configs: before }) => ({
      cluster_configs: before.replace(/\n?$/, before && "\n") + line(option),
    });
    const options = (form) => html`
      <${Options} configs=${source.configs ?? []} choose=${(option) => form.change(added(option))} />`;
    const network = values.neutron_management_network;
    return [
      { name: "name", label: "Name", autofocus: true },
      { name: "description", label: "Description" },
      { name: "cluster_template_id", label: "Made of", options: all.map(({ label }) => [label, label]) },
      {
        name: "default_image_id",
        label: "Image",
        options: [
          ["", source.default_image_id ? "that of the template" : "choose an image"],
          ...fitting.map((each) => [each.id, each.name]),
          ...others.map((each) => [each.id, `${each.name} (lacks tags)`]),
        ],
        hint: images.length
          ? html`<a href=${to(["images"])}>Images and their tags</a>`
          : html`<p>No image is registered: <a href=${to(["images"])}>register one</a>.</p>`,
      },
      { name: "user_keypair_id", ...choice("Key pair", keypairs, values.user_keypair_id, "none: you cannot log in") },
      { name: "neutron_management_network", ...choice("Network", networks, network, anyNetwork(source, networks)) },
      {
        name: "groups",
        label: "Node groups",
        draw: (form) => html`<${Groups} form=${form} source=${source} offer=${offer} />`,
      },
      {
        name: "cluster_configs",
        label: "Options, one on a line",
        lines: 3,
        placeholder: "HDFS.dfs.replication=2",
        advice: options,
      },
      { name: "plan", label: "Plan", draw: () => html`<${Planned} body=${body(values)} />` },
    ];
  };
  const only = (rows) => (rows?.length === 1 ? rows[0] : {});
  const first = {
    name: "",
    description: "",
    cluster_template_id: all[0]?.label,
    default_image_id: only(images).id ?? "",
    user_keypair_id: only(keypairs)[0] ?? "",
    neutron_management_network: "",
    node_groups: {},
    cluster_configs: "",
  };
  const act = async (values, key) => (await call("POST", path("clusters"), { body: body(values), key })).cluster;
  const done = (cluster) => {
    keep("cluster", cluster);
    location.hash = to(["clusters", cluster.id]);
  };
  const command = (values) => createCluster(body(values), layout(sourceOf(values).node_processes, usual));
  const faults = offer.failed.filter(({ part }) => part in offer).map((each) => each.error_message);
  return html`
    ${faults.length > 0 && html`<div class="notice" role="status">
      <strong>Not all choices can be shown</strong> <${Lines} text=${faults.join("\n")} />
    </div>`}
    <div class="launch">
      <${Form} name="cluster" title="New cluster" verb="Create the cluster" first=${first} fields=${fields}
        act=${act} done=${done} command=${command} />
    </div>`;
}

export function Launch() {
  const { data, wait } = useRead(sources);
  useTitle("New cluster");
  return html`<h1 class="unseen">New cluster</h1>${data ? html`<${NewCluster} ...${data} />` : wait}`;
}

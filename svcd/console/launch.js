// A new cluster: what a person types, with the plan of svcd beside it.
import { useState } from "./hooks.js";
import { html } from "./html.js";
import { call, get, path } from "./api.js";
import { createCluster, createRequest } from "./commands.js";
import { Form } from "./forms.js";
import { Groups, groupsOf, labelOf } from "./groups.js";
import { fits, lists, Options, Register, useRead } from "./images.js";
import { choice, choicesOf, readOffer, usualFlavor } from "./offer.js";
import { Command, Dialog, Head, Lines } from "./parts.js";
import { Plan } from "./plan.js";
import { bodyOf, layout } from "./request.js";
import { to } from "./route.js";
import { keep } from "./store.js";
import { withLine } from "./text.js";
import { duration } from "./time.js";

const LIVES = [0, 1, 8, 24, 168].map((h) => [`${h * 3600}`, h ? duration(h * 3600_000) : "never"]);

// A field of the seconds after which svcd deletes the cluster.
function life(name, label, { [name]: set }) {
  const usual = set === undefined ? "default of svcd" : `that of the template: ${set ? duration(set * 1000) : "never"}`;
  return { name, label, options: [["", usual], ...LIVES] };
}

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
  return { images, plugins, all: [...plugins, ...made], offer };
}

// The text of no network: what svcd then does.
function anyNetwork(source, networks) {
  if (source.neutron_management_network) return "that of the template";
  return networks?.length > 1 ? "choose a network" : "the only one of the project";
}

// The plan of a dry run, and the request. again(): reads the lists anew.
function Planned({ form, fields, body, again }) {
  const address = path("clusters");
  const lacking = ({ name, required }) => required && !form.values[name].trim();
  const needs = fields.filter(lacking).map((each) => each.label).join(", ");
  const label = (name) => fields.find((each) => each.name === name)?.label ?? labelOf(name, body.node_groups);
  const say = (error) => Object.entries(form.faultsOf(error)).flatMap(([name, lines]) =>
    lines.map((line) => (name ? `${label(name)}: ${line}` : line))).join("\n");
  const told = (error) => {
    form.told(error);
    if (error?.message.includes("default_image_id")) again(); // another tab may have changed the images
  };
  return html`<h3>Plan</h3>
    ${needs && html`<p class="faint">Still needed: ${needs}</p>`}
    <${Plan} method="POST" address=${address} body=${needs ? null : body} say=${say} told=${told} />
    <details>
      <summary>The request</summary>
      <${Command} open text=${createRequest(location.origin + address, body)} />
    </details>`;
}

function NewCluster({ images, plugins, all, offer, again }) {
  const [asked, ask] = useState(null); // for an image to register
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
    const { required_image_tags: wanted } = source;
    const fit = (image) => fits(image, source);
    const others = images.filter((each) => !fit(each));
    const rows = [...images.filter(fit), ...others].map((each) => [each.id, each.name + (fit(each) ? "" : " (lacks tags)")]);
    const added = ({ applicable_target: target, name, default_value: value }) => ({ cluster_configs: before }) => ({
      cluster_configs: withLine(before, `${target}.${name}=${value}`),
    });
    const options = (form) => html`
      <${Options} configs=${source.configs ?? []} choose=${(option) => form.change(added(option))} />`;
    const { neutron_management_network: network, default_image_id: image } = values;
    return [
      { name: "name", label: "Name", autofocus: true, required: true },
      { name: "description", label: "Description" },
      { name: "cluster_template_id", label: "Made of", options: all.map(({ label }) => [label, label]) },
      {
        name: "default_image_id",
        required: !source.default_image_id,
        ...choice("Image", rows, image, source.default_image_id ? "that of the template" : "choose an image"),
        advice: ({ change }) => html`<div>
          ${!images.some(fit) && "No image fits. "}
          <button type="button" class="small" onClick=${() => ask({ change, images: [...offer.unregistered_images, ...others], wanted })}>
            Register an image
          </button>
        </div>`,
      },
      { name: "user_keypair_id", ...choice("Key pair", keypairs, values.user_keypair_id, "none: you cannot log in") },
      { name: "neutron_management_network", ...choice("Network", networks, network, anyNetwork(source, networks)) },
      life("idle_delete_s", "Delete after idle time", source),
      life("max_age_s", "Maximum age", source),
      {
        name: "node_groups",
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
    ];
  };
  const aside = (form) => html`
    <${Planned} form=${form} fields=${fields(form.values)} body=${body(form.values)} again=${again} />`;
  const close = () => ask(null);
  const registered = async (id) => {
    await again();
    asked.change({ default_image_id: id });
    close();
  };
  const only = (rows) => (rows?.length === 1 ? rows[0] : {});
  const first = {
    name: "",
    description: "",
    cluster_template_id: all[0]?.label,
    default_image_id: only(images.filter((each) => fits(each, all[0]))).id ?? "",
    user_keypair_id: only(keypairs)[0] ?? "",
    neutron_management_network: "",
    idle_delete_s: "",
    max_age_s: "",
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
        act=${act} done=${done} command=${command} aside=${aside} />
    </div>
    ${asked && html`
      <${Dialog} onClose=${close} aria-label="Register an image">
        <button type="button" class="small" onClick=${close}>Close</button>
        <${Register} images=${asked.images} wanted=${asked.wanted} plugins=${plugins} done=${registered} />
      <//>`}`;
}

export function Launch() {
  const { data, again, wait } = useRead(sources);
  return html`<${Head} title="New cluster" class="unseen" />${data ? html`<${NewCluster} again=${again} ...${data} />` : wait}`;
}

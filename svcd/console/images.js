// The registered images and which plugins they fit; the plugins with their options.
import { useEffect, useRef, useState } from "./hooks.js";
import { html } from "./html.js";
import { get, path, send } from "./api.js";
import { registerImage, word } from "./commands.js";
import { Form } from "./forms.js";
import { Command, Empty, Lines, Name, Problem, Question, State, Table, useTitle } from "./parts.js";
import { count, plain } from "./text.js";

const MOST = 10; // options shown at a time
const details = new Map(); // versions of plugins; they change with the release of the daemon only

// Images, and versions of plugins with their processes, tags and options.
export async function lists() {
  const [{ images }, { plugins }] = await Promise.all([get(path("images")), get(path("plugins"))]);
  const read = async ({ name, title }, version) => {
    const key = `${name} ${version}`;
    if (!details.has(key)) details.set(key, { ...(await get(path("plugins", name, version))).plugin, label: `${plain(title)} ${plain(version)}`, plugin_name: name, engine_version: version });
    return details.get(key);
  };
  return { images, plugins: await Promise.all(plugins.flatMap((each) => each.versions.map((version) => read(each, version)))) };
}

const lacks = (image, plugin) => (plugin.required_image_tags ?? []).filter((each) => !image.tags.includes(each));
export const fits = (image, plugin) => !lacks(image, plugin).length;

// What `read` answers, for lists that `watch` does not report: {data, again, wait: what to show without data}.
export function useRead(read) {
  const [{ data, problem }, set] = useState({});
  const again = () => read().then((answer) => set({ data: answer }), (error) => set({ problem: error.message }));
  useEffect(() => void again(), []);
  return { data, again, wait: problem ? html`<${Problem} title="The lists cannot be read"><${Lines} text=${problem} /><button type="button" onClick=${again}>Try again</button><//>` : html`<p class="faint" role="status">Reading plugins and images…</p>` };
}

// Options, found by words of names, targets and descriptions. choose(option): adds one; without it they are only shown.
export function Options({ configs, choose, of = "" }) {
  const [typed, type] = useState("");
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  const has = (text) => words.every((each) => text.toLowerCase().includes(each));
  const found = configs.filter((each) => words[0] && has(`${each.applicable_target}.${each.name} ${each.description}`)).sort((a, b) => has(b.name) - has(a.name) || a.priority - b.priority || a.name.length - b.name.length);
  return html`<input class="search" type="search" aria-label=${`Find an option${of}`} placeholder=${`Find in ${count(configs.length, "option")}`} value=${typed} onInput=${(e) => type(e.target.value)} onKeyDown=${(e) => e.key === "Enter" && e.preventDefault()} />
    <ul class="rows">${found.slice(0, MOST).map((each) => html`<li key=${each.applicable_target + each.name}>${choose && html`<button type="button" class="small push" aria-label=${`Add ${plain(each.name)}`} onClick=${() => choose(each)}>Add</button>`}
      <strong>${plain(each.name)}</strong> <span class="faint">${plain(each.applicable_target)}, default ${plain(each.default_value) || "empty"}</span><div dir="auto">${plain(each.description)}</div></li>`)}</ul>
    <p class="faint" role="status">${words[0] && (found.length > MOST ? `${MOST} of ${found.length}: type more to find others` : `${found.length} found`)}</p>`;
}

const words = (text) => text.split(/[\s,]+/).filter(Boolean);

// Register an image, or change login, description and tags of a registered one.
function Register({ image, plugins, done }) {
  const gone = (values) => image?.tags.filter((each) => !words(values.tags).includes(each)) ?? [];
  const act = async (values, key) => {
    const post = (more, body) => send("POST", path("images", values.id.trim(), ...more), { body, key });
    await post([], { username: values.username, description: values.description });
    if (words(values.tags).length) await post(["tag"], { tags: words(values.tags) });
    if (gone(values).length) await post(["untag"], { tags: gone(values) });
  };
  const hint = html`<p class="faint">${plugins.map((each) => `${each.label} needs ${each.required_image_tags.map(plain).join(" ") || "none"}.`).join(" ")}</p>`;
  const fields = () => [
    { name: "id", label: "Id of the image in the cloud", readonly: Boolean(image), autofocus: !image },
    { name: "username", label: "Login of its system", autofocus: Boolean(image) },
    { name: "description", label: "Description" },
    { name: "tags", label: "Tags", hint },
  ];
  return html`<${Form} name=${`image ${image?.id}`} title=${image ? html`Change <bdi>${plain(image.name)}</bdi>` : "Register an image"} verb=${image ? "Change the image" : "Register the image"} fields=${fields} act=${act} done=${done}
    first=${{ id: "", username: "", description: "", ...image, tags: image?.tags.join(" ") ?? "" }} command=${(values) => registerImage(values, words(values.tags), gone(values))} />`;
}

const Unregister = ({ image, close, done }) => html`<${Question} title="Unregister this image?" verb="Unregister the image" danger confirm=${image.name} command=${`svcd image rm ${image.id}`} close=${close}
  act=${async (key) => done(await send("DELETE", path("images", image.id), { key }))}><p>svcd forgets its login and tags. The image stays in the cloud.</p><//>`;

const Plugin = (plugin) => html`<section class="sheet" key=${plugin.label} aria-label=${plugin.label}><h3>${plugin.label}</h3><p dir="auto">${plain(plugin.description)}</p>
  <dl class="values">${Object.entries({ "Tags of its images": plugin.required_image_tags, ...plugin.node_processes }).map(([name, all]) => html`<div><dt>${plain(name)}</dt><dd>${all.map(plain).join(", ") || "none"}</dd></div>`)}</dl>
  <${Options} configs=${plugin.configs} of=${` of ${plugin.label}`} /><${Command} text=${`svcd plugin configs ${word(plugin.plugin_name)} --version ${word(plugin.engine_version)}`} /></section>`;

export function Images() {
  const { data, again, wait } = useRead(lists);
  const [{ what, image }, ask] = useState({});
  const opener = useRef(null); // of the form: it gets the focus back
  const open = (question) => (event) => {
    opener.current = event.currentTarget;
    ask(question);
  };
  const close = () => {
    ask({});
    opener.current?.focus();
  };
  const done = () => {
    close();
    again();
  };
  useTitle("Images and plugins");
  const row = (each) => html`<tr key=${each.id}><th scope="row"><${Name}>${each.name}<//><div class="faint wide"><code>${plain(each.id)}</code></div><div dir="auto">${plain(each.description)}</div></th>
    <td class="wide">${plain(each.username)}</td><td class="wide"><span class="tags">${each.tags.map((tag) => html`<span>${plain(tag)}</span>`)}</span></td>
    <td class="fits">${data.plugins.map((plugin) => html`<div><${State} word=${plugin.label} of=${fits(each, plugin) ? "done" : "accepted"} /> ${!fits(each, plugin) && html`<span class="faint">lacks ${lacks(each, plugin).map(plain).join(" ")}</span>`}</div>`)}</td>
    <td><div class="buttons">${["Change", "Unregister"].map((verb) => html`<button type="button" class="small" aria-label=${`${verb} ${plain(each.name)}`} onClick=${open({ what: verb, image: each })}>${verb}</button>`)}</div></td></tr>`;
  return html`<header class="title"><h1>Images and plugins</h1><button type="button" onClick=${what ? close : open({ what: "Register" })}>${what ? "Close the form" : "Register an image"}</button></header>
    ${!data ? wait : html`${/Change|Register/.test(what) && html`<${Register} key=${image?.id} image=${image} plugins=${data.plugins} done=${done} />`}
    <section aria-labelledby="images"><h2 id="images">Registered images</h2>
      ${data.images.length ? html`<${Table} columns=${{ Image: "", Login: "wide", Tags: "wide", Fits: "", Actions: "unseen" }}>${data.images.map(row)}<//>`
        : html`<${Empty} title="No image is registered"><p>svcd makes clusters of images whose login and tags it knows.</p><//>`}</section>
    <section aria-labelledby="plugins"><h2 id="plugins">Plugins</h2>${data.plugins.map(Plugin)}</section>
    ${what === "Unregister" && html`<${Unregister} image=${image} done=${again} close=${() => ask({})} />`}`}`;
}

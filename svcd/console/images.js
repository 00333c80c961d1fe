// The registered images and which plugins they fit; the plugins with their options.
import { useEffect, useRef, useState } from "./hooks.js";
import { html } from "./html.js";
import { get, path, send } from "./api.js";
import { registerImage } from "./commands.js";
import { Form } from "./forms.js";
import { choice } from "./offer.js";
import { Command, Empty, Head, Lines, Name, Problem, Section, State, Table, Values } from "./parts.js";
import { Question } from "./question.js";
import { count, plain, quoted } from "./text.js";

const MOST = 10; // options shown at a time
const SETTLED_MS = 2000;
const details = new Map(); // versions of plugins; they change with the release of the daemon only

async function readPlugin({ name, title }, version) {
  const key = `${name} ${version}`;
  if (!details.has(key)) {
    const { plugin } = await get(path("plugins", name, version));
    const label = `${plain(title)} ${plain(version)}`;
    details.set(key, { ...plugin, label, plugin_name: name, engine_version: version });
  }
  return details.get(key);
}

// Images, and versions of plugins with their processes, tags and options.
export async function lists() {
  const [{ images }, { plugins }] = await Promise.all([get(path("images")), get(path("plugins"))]);
  const versions = plugins.flatMap((plugin) => plugin.versions.map((version) => readPlugin(plugin, version)));
  return { images, plugins: await Promise.all(versions) };
}

// The same, and the images of the cloud that are not registered. They are missed if the cloud cannot be read.
async function allLists() {
  const [known, offer] = await Promise.all([lists(), get(path("cloud")).catch(() => null)]);
  return { ...known, others: offer?.cloud.unregistered_images ?? [] };
}

const lacks = (image, plugin) => (plugin.required_image_tags ?? []).filter((each) => !image.tags.includes(each));
export const fits = (image, plugin) => !lacks(image, plugin).length;

// What `read` answers, for lists that `watch` does not report: {data, again, wait: what to show without data}.
// stamp: when it changes and nothing has changed since then, they are read again.
export function useRead(read, stamp) {
  const [{ data, problem }, set] = useState({});
  const again = () => read().then(
    (answer) => set({ data: answer }),
    (error) => set((before) => ({ ...before, problem: error.message })),
  );
  useEffect(() => {
    const timer = setTimeout(again, data ? SETTLED_MS : 0);
    return () => clearTimeout(timer);
  }, [stamp]);
  const failed = () => html`
    <${Problem} title="The lists cannot be read">
      <${Lines} text=${problem} /><button type="button" onClick=${again}>Try again</button>
    <//>`;
  const reading = html`<p class="faint" role="status">Reading the lists…</p>`;
  return { data, problem, again, wait: problem ? failed() : reading };
}

// The options that have all the words; those with the words in their names come first.
function findOptions(configs, wanted) {
  if (!wanted.length) return [];
  const has = (text) => wanted.every((each) => text.toLowerCase().includes(each));
  const found = configs.filter((each) => has(`${each.applicable_target}.${each.name} ${each.description}`));
  return found.sort((a, b) => has(b.name) - has(a.name) || a.priority - b.priority || a.name.length - b.name.length);
}

function Option({ option, choose }) {
  const name = plain(option.name);
  const facts = `${plain(option.applicable_target)}, default ${plain(option.default_value) || "empty"}`;
  return html`<li>
    ${choose && html`
      <button type="button" class="small push" aria-label=${`Add ${name}`} onClick=${() => choose(option)}>Add</button>`}
    <strong>${name}</strong> <span class="faint">${facts}</span>
    <div dir="auto">${plain(option.description)}</div>
  </li>`;
}

// Options, found by words of names, targets and descriptions. choose(option): adds one; without it they are only shown.
export function Options({ configs, choose, of = "" }) {
  const [typed, type] = useState("");
  const wanted = typed.toLowerCase().split(/\s+/).filter(Boolean);
  const found = findOptions(configs, wanted);
  const result = found.length > MOST ? `${MOST} of ${found.length}: type more to find others` : `${found.length} found`;
  return html`
    <input class="search" type="search" value=${typed} aria-label=${`Find an option${of}`}
      placeholder=${`Find in ${count(configs.length, "option")}`}
      onInput=${(e) => type(e.target.value)} onKeyDown=${(e) => e.key === "Enter" && e.preventDefault()} />
    <ul class="rows">${found.slice(0, MOST).map((each) => html`
      <${Option} key=${each.applicable_target + each.name} option=${each} choose=${choose} />`)}
    </ul>
    <p class="faint" role="status">${wanted.length > 0 && result}</p>`;
}

const words = (text) => text.split(/[\s,]+/).filter(Boolean);

// Register an image, or change login, description and tags of a registered one. images: those to choose from, without
// them its id is typed; wanted: tags that are proposed. done(id): afterwards.
export function Register({ image, images, wanted = [], plugins, done }) {
  const known = Boolean(image?.tags); // it is registered
  const imageOf = (id) => image ?? images?.find((each) => each.id === id);
  const gone = (values) => imageOf(values.id)?.tags?.filter((each) => !words(values.tags).includes(each)) ?? [];
  const filled = (own) => ({
    id: "", username: "", description: "", ...own, tags: [...new Set((own?.tags ?? []).concat(wanted))].join(" "),
  });
  const act = async (values, key) => {
    const post = (more, body) => send("POST", path("images", values.id.trim(), ...more), { body, key });
    await post([], { username: values.username, description: values.description });
    if (words(values.tags).length) await post(["tag"], { tags: words(values.tags) });
    if (gone(values).length) await post(["untag"], { tags: gone(values) });
    return values.id.trim();
  };
  const needs = ({ label, required_image_tags: tags }) => `${label} needs ${tags.map(plain).join(" ") || "none"}.`;
  const hint = html`<p class="faint">${plugins.map(needs).join(" ")}</p>`;
  const rows = images?.map((each) => [each.id, each.name]);
  const fields = ({ id }, change) => [
    {
      name: "id",
      readonly: Boolean(image),
      autofocus: !image,
      ...choice("Image of the cloud", rows, id, "choose an image"),
      ...(rows && { onInput: (event) => change(filled(imageOf(event.target.value))) }),
    },
    { name: "username", label: "Login of its system", autofocus: Boolean(image) },
    { name: "description", label: "Description" },
    { name: "tags", label: "Tags", hint },
  ];
  const first = filled(image ?? (images?.length === 1 && images[0]));
  return html`
    <${Form} name=${`image ${image?.id} ${wanted}`} first=${first} fields=${fields} act=${act} done=${done}
      title=${image ? html`${known ? "Change" : "Register"} <bdi>${plain(image.name)}</bdi>` : "Register an image"}
      verb=${known ? "Change the image" : "Register the image"}
      command=${(values) => registerImage(values, words(values.tags), gone(values))} />`;
}

function Unregister({ image, close, done }) {
  const act = async (key) => done(await send("DELETE", path("images", image.id), { key }));
  return html`
    <${Question} title="Unregister this image?" verb="Unregister the image" danger confirm=${image.name}
        command=${`svcd image rm ${image.id}`} act=${act} close=${close}>
      <p>svcd forgets its login and tags. The image stays in the cloud.</p>
    <//>`;
}

function Plugin({ label, description, configs, plugin_name: name, engine_version: version, ...plugin }) {
  const lists = { "Tags of its images": plugin.required_image_tags, ...plugin.node_processes };
  const rows = Object.entries(lists).map(([title, all]) => [plain(title), all.map(plain).join(", ") || "none"]);
  return html`<section class="sheet" key=${label} aria-label=${label}>
    <h3>${label}</h3>
    <p dir="auto">${plain(description)}</p>
    <${Values} rows=${rows} />
    <${Options} configs=${configs} of=${` of ${label}`} />
    <${Command} text=${`svcd plugin configs ${quoted(name)} --version ${quoted(version)}`} />
  </section>`;
}

const Fit = ({ image, plugin }) => html`<div>
  <${State} word=${plugin.label} of=${fits(image, plugin) ? "done" : "accepted"} />${" "}
  ${!fits(image, plugin) && html`<span class="faint">lacks ${lacks(image, plugin).map(plain).join(" ")}</span>`}
</div>`;

// ask(verb): opens the form or the question of a button.
const Row = ({ image, plugins, ask }) => html`<tr>
  <th scope="row">
    <${Name}>${image.name}<//>
    <div class="faint wide"><code>${plain(image.id)}</code></div>
    <div dir="auto">${plain(image.description)}</div>
  </th>
  <td class="wide">${plain(image.username)}</td>
  <td class="wide"><span class="tags">${image.tags.map((tag) => html`<span>${plain(tag)}</span>`)}</span></td>
  <td class="fits">${plugins.map((plugin) => html`<${Fit} image=${image} plugin=${plugin} />`)}</td>
  <td><div class="buttons">${["Change", "Unregister"].map((verb) => html`
    <button type="button" class="small" aria-label=${`${verb} ${plain(image.name)}`} onClick=${ask(verb)}>${verb}</button>`)}
  </div></td>
</tr>`;
const COLUMNS = { Image: "", Login: "wide", Tags: "wide", Fits: "", Actions: "unseen" };

// An image of the cloud that is not registered.
const Other = ({ image, open }) => html`<li>
  <button type="button" class="small push" aria-label=${`Register ${plain(image.name)}`}
    onClick=${open({ what: "Register", image })}>Register</button>
  <${Name}>${image.name}<//> <code class="faint wide">${plain(image.id)}</code>
</li>`;

export function Images() {
  const { data, again, wait } = useRead(allLists);
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
  const row = (each) => html`
    <${Row} key=${each.id} image=${each} plugins=${data.plugins} ask=${(verb) => open({ what: verb, image: each })} />`;
  const none = html`
    <${Empty} title="No image is registered">
      <p>svcd makes clusters of images whose login and tags it knows.</p>
    <//>`;
  const shown = () => html`
    ${/Change|Register/.test(what) && html`
      <${Register} key=${image?.id} image=${image} plugins=${data.plugins} done=${done} />`}
    <${Section} id="images" title="Registered images">
      ${data.images.length ? html`<${Table} columns=${COLUMNS}>${data.images.map(row)}<//>` : none}
    <//>
    ${data.others.length > 0 && html`<${Section} id="others" title="Other images of the cloud">
      <ul class="rows">${data.others.map((each) => html`<${Other} key=${each.id} image=${each} open=${open} />`)}</ul>
    <//>`}
    <${Section} id="plugins" title="Plugins">${data.plugins.map(Plugin)}<//>
    ${what === "Unregister" && html`<${Unregister} image=${image} done=${again} close=${() => ask({})} />`}`;
  return html`
    <${Head} title="Images and plugins">
      <button type="button" onClick=${what ? close : open({ what: "Register" })}>
        ${what ? "Close the form" : "Register an image"}
      </button>
    <//>
    ${data ? shown() : wait}`;
}

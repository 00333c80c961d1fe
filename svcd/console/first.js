// The first steps of a project: an image, a cluster, a run.
import { html } from "./html.js";
import { newCluster, newRun } from "./commands.js";
import { fits, lists, useRead } from "./images.js";
import { Command, Section, State } from "./parts.js";
import { to } from "./route.js";
import { count, plain } from "./text.js";

const IMAGE = "svcd image register IMAGE --user LOGIN";
const NO_PLUGIN = "no plugin is enabled: ask the operator (plugins.enabled)";

// The steps with their states: done, next, later. images: how many fit a plugin; others: how many fit none; plugins:
// names of the enabled ones; clusters: how many there are.
export function firstSteps({ images, others, plugins, clusters }) {
  const isOld = clusters > 0;
  const hasImage = isOld || images > 0;
  const none = !plugins.length;
  const lacking = others ? "none has the tags of a plugin" : "none is registered";
  const registered = images ? `${count(images, "image")} registered` : lacking;
  const state = (isDone, canBegin) => (isDone ? "done" : canBegin ? "next" : "later");
  return [
    { title: "Register an image", text: registered, state: state(hasImage, true), list: "images", command: IMAGE },
    {
      title: "Create a cluster",
      verb: "New cluster",
      text: isOld ? count(clusters, "cluster") : none ? NO_PLUGIN : "of a plugin or a template",
      state: state(isOld, hasImage && !none),
      list: "launch",
      command: newCluster(plugins[0]),
    },
    {
      title: "Run a program",
      text: "of Pig, Spark, Java or a shell; input from your computer comes by the command",
      state: state(false, isOld),
      list: "run",
      command: newRun,
    },
  ];
}

const TONES = { done: "done", next: "busy", later: "accepted" };

const Step = ({ step: { title, verb = title, text, state, list, command } }) => html`<li class="card step">
  <span class="top"><strong>${title}</strong><span class="push"><${State} word=${state} of=${TONES[state]} /></span></span>
  <span class="faint">${plain(text)}</span>
  ${state === "next" && html`<${Command} text=${command} />`}
  ${state !== "later" && html`<a class=${`button ${state}`} href=${to([list])}>${verb}</a>`}
</li>`;

async function read() {
  const { images, plugins } = await lists();
  const fitting = images.filter((image) => plugins.some((plugin) => fits(image, plugin))).length;
  return { images: fitting, others: images.length - fitting, plugins: plugins.map((each) => each.plugin_name) };
}

// In place of the empty tables, until a program has run.
export function FirstSteps({ clusters }) {
  const { data, wait } = useRead(read);
  return html`<${Section} id="first" title="First steps">
    ${!clusters && html`<p class="faint">No clusters yet: three steps lead to the first run.</p>`}
    ${data ? html`<ol class="cards">${firstSteps({ ...data, clusters }).map((step) => html`
      <${Step} key=${step.title} step=${step} />`)}
    </ol>` : wait}
  <//>`;
}

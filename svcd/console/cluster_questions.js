// The questions before the actions on a cluster: scale, delete, try again.
import { useState } from "./hooks.js";
import { html } from "./html.js";
import { call, path, send } from "./api.js";
import { deleteCluster, keepCluster, retryCluster, scaleCluster } from "./commands.js";
import { Plan } from "./plan.js";
import { Question } from "./question.js";
import { hasEnded, machines } from "./records.js";
import { keep, store, useStore } from "./store.js";
import { count, plain } from "./text.js";
import { full, moment, now } from "./time.js";

const isNumber = (text) => /^\d+$/.test(text);

async function put({ id }, body, key) {
  const before = store.cluster.get(id);
  keep("cluster", (await call("PUT", path("clusters", id), { body, key })).cluster, before);
}

const Size = ({ name, before, text, change }) => html`
  <label class="field">
    <span><bdi>${plain(name)}</bdi> <span class="faint">now ${before}</span></span>
    <input inputmode="numeric" value=${text} aria-invalid=${!isNumber(text)}
      onInput=${(e) => change(e.target.value.trim())} />
  </label>`;

function Scale({ cluster, close }) {
  const groups = cluster.node_groups;
  const [sizes, set] = useState(Object.fromEntries(groups.map((each) => [each.name, String(each.count)])));
  const wanted = groups.map(({ name, count: before }) => ({ name, count: Number(sizes[name]), before }));
  const valid = wanted.every((each) => isNumber(sizes[each.name]) && Number.isSafeInteger(each.count));
  const changed = wanted.filter((each) => each.count !== each.before).map(({ before: _, ...each }) => each);
  const fewer = valid && wanted.some((each) => each.count < each.before);
  const ready = valid && changed.length > 0;
  const body = { resize_node_groups: changed };
  return html`
    <${Question} title="Change the size" verb="Change the size" ready=${ready}
        danger=${fewer} confirm=${fewer ? cluster.name : ""} close=${close}
        command=${scaleCluster(cluster, changed)} act=${(key) => put(cluster, body, key)}>
      ${wanted.map(({ name, before }) => html`
        <${Size} key=${name} name=${name} before=${before} text=${sizes[name]}
          change=${(text) => set({ ...sizes, [name]: text })} />`)}
      <${Plan} method="PUT" address=${path("clusters", cluster.id)} body=${ready ? body : null} />
      ${fewer && html`<p>svcd moves the data off the machines that go, then deletes them.</p>`}
    <//>`;
}

function Delete({ cluster, close }) {
  const own = [...useStore().job_execution.values()].filter((each) => each.cluster_id === cluster.id);
  const running = own.filter((each) => !hasEnded(each)).length;
  const act = (key) => send("DELETE", path("clusters", cluster.id), { key });
  const lost = count(machines(cluster).length, "machine");
  return html`
    <${Question} title="Delete this cluster?" verb="Delete the cluster" danger confirm=${cluster.name}
        command=${deleteCluster(cluster)} act=${act} close=${close}>
      <p>svcd deletes its ${lost} and their data. This cannot be undone.</p>
      ${running > 0 && html`
        <p><strong>${count(running, "run has", "runs have")} not ended and will be killed.</strong></p>`}
    <//>`;
}

const REPEATED = "svcd repeats the change that failed, from the step where it stopped.";
const REPLACED = "svcd replaces the machines that the cloud has no more.";

const Retry = ({ cluster, close }) => html`
  <${Question} title="Try again?" verb="Try again" command=${retryCluster(cluster)}
      act=${(key) => put(cluster, {}, key)} close=${close}>
    <p>${cluster.status === "Error" ? REPEATED : REPLACED}</p>
  <//>`;

const KEPT_MS = 2 * 3600_000;

function Keep({ cluster, close }) {
  const before = moment(cluster.keep_until);
  const [until] = useState(() => new Date(Math.max(now() + KEPT_MS, before))); // the same for each press
  return html`
    <${Question} title="Keep this cluster for 2 hours?" verb="Keep 2 hours" command=${keepCluster(cluster)}
        act=${(key) => put(cluster, { keep_until: until.toISOString() }, key)} close=${close}>
      <p>svcd does not delete it before ${full(until)}${+until === before && ", as before"}.</p>
    <//>`;
}

export const QUESTIONS = { scale: Scale, delete: Delete, retry: Retry, keep: Keep };

// One cluster: what it is, its machines, how it was made, its events; scale, retry and delete.
import { useEffect, useState } from "./hooks.js";
import { html } from "./html.js";
import { path } from "./api.js";
import { QUESTIONS } from "./cluster_questions.js";
import { tunnel, why } from "./commands.js";
import { Row, rowsOf, wordsOf } from "./events.js";
import { Gantt } from "./gantt_view.js";
import {
  Command,
  Ending,
  Filter,
  Found,
  Lines,
  Missing,
  Name,
  Outside,
  Problem,
  Search,
  Section,
  State,
  Table,
  Time,
  Title,
  useTick,
  useTitle,
  Values,
} from "./parts.js";
import { isBusy, isUnwell, named, size } from "./records.js";
import { to } from "./route.js";
import { NewestRuns } from "./run_table.js";
import { openEvents, useStore } from "./store.js";
import { useStory } from "./story.js";
import { count, plain } from "./text.js";
import { duration, full, left, moment, now } from "./time.js";

const MOST_EVENTS = 300;
const MOST_MACHINES = 100;

function Machine({ machine, ill }) {
  const { instance_name: name, status: word, server_id: server, volumes } = machine;
  return html`<tr>
    <th scope="row"><${Name}>${name}<//></th>
    <td>${word
      ? html`<${State} word=${ill && word === "ACTIVE" ? "unwell" : word} />`
      : html`<span class="faint">not made yet</span>`}</td>
    <td><code>${plain(machine.management_ip ?? machine.internal_ip ?? "–")}</code></td>
    <td class="wide"><code class="faint">${plain(server ?? "–")}</code></td>
    <td class="wide amount">${volumes.length || "–"}</td>
  </tr>`;
}
const MACHINE = { Machine: "", State: "", Address: "", Server: "wide", Volumes: "wide amount" };

// ill: names of machines that are not well.
function Group({ group: { name, count: size, instances, node_processes: processes, init_scripts: scripts = [] }, ill }) {
  const [all, showAll] = useState(false);
  const shown = all ? instances : instances.slice(0, MOST_MACHINES);
  return html`<section class="group" aria-label=${plain(name)}>
    <div class="heading">
      <h3>
        <${Name}>${name}<//>${" "}
        <span class="number">${instances.length}${instances.length === size ? "" : ` of ${size}`}</span>
      </h3>
      <span class="tags">${processes.map((each) => html`<span key=${each}>${plain(each)}</span>`)}</span>
    </div>
    ${scripts.length > 0 && html`<p class="faint">First-boot scripts: <${Name}>${scripts.join(", ")}<//></p>`}
    ${instances.length > 0 && html`
      <${Table} columns=${MACHINE}>
        ${shown.map((each) => html`
          <${Machine} key=${each.instance_id} machine=${each} ill=${ill.has(each.instance_name)} />`)}
      <//>`}
    ${shown.length < instances.length && html`
      <button type="button" onClick=${() => showAll(true)}>Show all ${instances.length} machines</button>`}
  </section>`;
}

function Events({ events, query }) {
  const wanted = (query.events ?? "").toLowerCase();
  const rows = rowsOf(events).filter((row) => wordsOf(row).includes(wanted));
  const shown = rows.slice(-MOST_EVENTS).reverse();
  const list = () => html`<${Found} one="event" number=${rows.length} most=${MOST_EVENTS}>
    <ol class="events" tabindex="0" aria-label="Events">
      ${shown.map((row) => html`<${Row} key=${row.key} event=${row} here />`)}
    </ol>
  <//>`;
  const search = html`<${Search} class="push" text="Find in events" of="events" query=${query} />`;
  return html`<${Section} id="events" title="Events" number=${rows.length} side=${search}>
    ${events.size ? list() : html`<p class="faint">No events.</p>`}
  <//>`;
}

// A link of Spark Connect works through a tunnel only, and has a token.
const Links = ({ info, cluster }) => html`<${Section} id="links" title="Links">
  <${Values} rows=${Object.entries(info).flatMap(([service, links]) => Object.entries(links).map(([name, address]) => [
    html`${plain(service)} <span class="faint">${plain(name)}</span>`,
    address.startsWith("sc:")
      ? html`<${Command} open text=${tunnel(cluster, service)} />`
      : html`<${Outside} address=${address} />`,
  ]))} />
<//>`;

const endOf = (from, s) => (from && s ? moment(from) + s * 1000 : Infinity);
const length = (s) => s && duration(s * 1000);

// When svcd deletes the cluster by itself, and why; the hours of its machines. usage: undefined until it is read.
function Life({ cluster, usage, ask }) {
  const { idle_delete_s: idle, max_age_s: age, idle_since: since, keep_until: kept, delete_at: at } = cluster;
  const isOld = endOf(cluster.created_at, age) < endOf(since, idle);
  const cause = isOld ? "by its age" : html`last used <${Time} at=${since} />`;
  const rows = [
    ["svcd deletes it", at && html`<${Time} at=${at} draw=${left} />, ${cause}`],
    ["Delete after idle time", length(idle)],
    ["Maximum age", length(age)],
    ["Kept until", moment(kept) > now() && full(moment(kept))],
    ...(usage?.flavors ?? []).map((each) => [
      html`Flavor <${Name}>${each.flavor_id}<//>`,
      `${count(each.machines, "machine")}, ${each.instance_hours.toFixed(2)} instance hours`,
    ]),
  ];
  const side = at && html`<button type="button" class="small" onClick=${() => ask("keep")}>Keep 2 hours</button>`;
  return rows.some(([, drawn]) => drawn) && html`
    <${Section} id="life" title="Lifetime and usage" side=${side}><${Values} rows=${rows} /><//>`;
}

const TITLES = { Error: "This cluster failed", Active: "Not all of this cluster is well" };
const BEFORE = "Not all of this cluster was well before this change";

const EMPTY_RESIZE = "an empty resize (svcd cluster retry CLUSTER, or PUT with {})"; // of svcd/model/failures.py

// Advice speaks of a request to the API; here a button sends it.
function inPage(text) {
  return text.replaceAll(`retry with ${EMPTY_RESIZE}`, "press Try again").replaceAll(EMPTY_RESIZE, "Try again");
}

const Health = ({ cluster, wrong }) => html`
  <${Problem} title=${TITLES[cluster.status] ?? BEFORE}>
    <${Lines} text=${inPage(wrong) || "svcd gives no reason."} />
    <${Command} text=${why(cluster.id)} />
  <//>`;

const Facts = ({ cluster }) => html`
  <${State} word=${cluster.status} of=${isUnwell(cluster) ? "Error" : cluster.status} />
  <span>${plain(cluster.plugin_name)} ${plain(cluster.engine_version)}</span>
  <span>${size(cluster)} machines</span>
  <span>created <${Time} at=${cluster.created_at} /></span>
  ${cluster.is_transient && html`<span>transient</span>`}
  <${Ending} cluster=${cluster} />`;

function Buttons({ cluster, ask }) {
  const isActive = cluster.status === "Active";
  return html`
    ${isUnwell(cluster) && html`
      <button type="button" class="primary" onClick=${() => ask("retry")}>Try again</button>`}
    ${!["Error", "Deleting"].includes(cluster.status) && html`
      <a class="button" href=${to(["run"], { cluster: cluster.id })}>Run a program</a>`}
    <button type="button" disabled=${!isActive} title=${isActive ? "" : "An Active cluster can change its size"}
      onClick=${() => ask("scale")}>Scale</button>
    <button type="button" class="danger" disabled=${cluster.status === "Deleting"}
      onClick=${() => ask("delete")}>Delete</button>`;
}

// The drawing of one change, and the choice of another one.
function Provision({ cluster, story: { changes, change }, asked }) {
  const rows = changes.map((each) => [each.generation, `${each.generation}: ${each.request.slice(0, 60) || "events"}`]);
  const choice = rows.length > 1 && html`
    <${Filter} class="push" label="Change" of="change" query=${{ change: change?.generation }} rows=${rows} />`;
  return html`<${Section} id="change" title="Provision" side=${choice}>
    ${change
      ? html`<${Gantt} key=${change.generation} change=${change} cluster=${cluster.name}
          asked=${asked} />`
      : html`<p class="faint">No events are left.</p>`}
  <//>`;
}

export function Cluster({ id, query }) {
  const { cluster: clusters, events: kept, loaded } = useStore();
  const [question, ask] = useState("");
  const cluster = clusters.get(id);
  const isKnown = Boolean(cluster);
  const events = kept.get(id) ?? new Map();
  const mark = isKnown ? ([...events.values()].at(-1)?.number ?? 0) : null;
  const story = useStory(`${path("clusters", id, "story")}?change=${Number(query.change) || 0}`, cluster?.status, mark);
  const fresh = useStory(path("clusters", id), cluster?.status, isKnown ? Math.floor(now() / 60_000) : null);
  useEffect(() => {
    if (isKnown) openEvents(id);
  }, [id, isKnown]);
  useTick(isKnown && isBusy(cluster));
  useTitle(cluster?.name ?? "Cluster");
  if (!cluster) return loaded && html`<${Missing} what="cluster" id=${id} />`;
  const wrong = isUnwell(cluster) ? cluster.status_description : (story?.ailing ?? "");
  const ill = named(wrong);
  const Ask = QUESTIONS[question];
  return html`
    <${Title} all="Clusters" name=${cluster.name} facts=${html`<${Facts} cluster=${cluster} />`}>
      <${Buttons} cluster=${cluster} ask=${ask} />
    <//>
    ${cluster.description && html`<p dir="auto">${plain(cluster.description)}</p>`}
    ${(isUnwell(cluster) || wrong) && html`<${Health} cluster=${cluster} wrong=${wrong} />`}
    ${!isUnwell(cluster) && cluster.status_description && html`
      <p class="faint"><${Lines} text=${cluster.status_description} /></p>`}
    ${story && html`<${Provision} cluster=${cluster} story=${story} asked=${Boolean(query.change)} />`}
    <${Section} id="machines" title="Machines">
      ${cluster.node_groups.map((group) => html`<${Group} key=${group.name} group=${group} ill=${ill} />`)}
    <//>
    <${Life} cluster=${cluster} usage=${fresh?.usage} ask=${ask} />
    ${Object.keys(cluster.info).length > 0 && html`<${Links} info=${cluster.info} cluster=${cluster.name} />`}
    <${NewestRuns} of="cluster_id" id=${id} query=${{ cluster: id }} />
    <${Events} events=${events} query=${query} />
    ${Ask && html`<${Ask} cluster=${cluster} close=${() => ask("")} />`}`;
}

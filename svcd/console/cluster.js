// One cluster: what it is, its machines, how it was made, its events; scale, retry and delete.
import { useEffect, useState } from "./hooks.js";
import { html } from "./html.js";
import { path, send } from "./api.js";
import * as commands from "./commands.js";
import { changes } from "./gantt.js";
import { Gantt } from "./gantt_view.js";
import { Command, Empty, Filter, Lines, Name, Outside, Problem, Question, State, Table, Time, useTick, useTitle } from "./parts.js";
import { Plan } from "./plan.js";
import { ailing, hasEnded, isBusy, isUnwell, named, newestFirst, outcome, size, status } from "./records.js";
import { filter, to } from "./route.js";
import { keep, openEvents, useStore } from "./store.js";
import { count, plain } from "./text.js";

const MOST_EVENTS = 300;
const MOST_MACHINES = 100;

function Scale({ cluster, close }) {
  const [sizes, set] = useState(Object.fromEntries(cluster.node_groups.map((each) => [each.name, String(each.count)])));
  const wanted = cluster.node_groups.map((each) => ({ name: each.name, count: Number(sizes[each.name]), before: each.count }));
  const valid = wanted.every((each) => /^\d+$/.test(sizes[each.name]) && Number.isSafeInteger(each.count));
  const changed = wanted.filter((each) => each.count !== each.before).map(({ name, count: n }) => ({ name, count: n }));
  const fewer = valid && wanted.some((each) => each.count < each.before);
  const act = async (key) => {
    const response = await send("PUT", path("clusters", cluster.id), { body: { resize_node_groups: changed }, key });
    keep("cluster", (await response.json()).cluster);
  };
  return html`<${Question} title="Change the size" verb="Change the size" ready=${valid && changed.length > 0} danger=${fewer} confirm=${fewer ? cluster.name : ""}
      command=${commands.scaleCluster(cluster, changed)} act=${act} close=${close}>
    ${wanted.map((each) => html`<label class="field" key=${each.name}><span><bdi>${plain(each.name)}</bdi> <span class="faint">now ${each.before}</span></span>
      <input inputmode="numeric" value=${sizes[each.name]} aria-invalid=${!/^\d+$/.test(sizes[each.name])} onInput=${(e) => set({ ...sizes, [each.name]: e.target.value.trim() })} /></label>`)}
    <${Plan} method="PUT" address=${path("clusters", cluster.id)} body=${valid && changed.length ? { resize_node_groups: changed } : null} />
    ${fewer && html`<p>svcd moves the data off the machines that go, then deletes them.</p>`}
  <//>`;
}

function Delete({ cluster, close }) {
  const running = [...useStore().job_execution.values()].filter((each) => each.cluster_id === cluster.id && !hasEnded(each)).length;
  return html`<${Question} title="Delete this cluster?" verb="Delete the cluster" danger confirm=${cluster.name}
      command=${commands.deleteCluster(cluster)} close=${close} act=${(key) => send("DELETE", path("clusters", cluster.id), { key })}>
    <p>svcd deletes its ${count(cluster.node_groups.reduce((sum, each) => sum + each.instances.length, 0), "machine")} and their data. This cannot be undone.</p>
    ${running > 0 && html`<p><strong>${count(running, "run")} ${running === 1 ? "has" : "have"} not ended and will be killed.</strong></p>`}
  <//>`;
}

function Retry({ cluster, close }) {
  const act = async (key) => keep("cluster", (await (await send("PUT", path("clusters", cluster.id), { body: {}, key })).json()).cluster);
  return html`<${Question} title="Try again?" verb="Try again" command=${commands.retryCluster(cluster)} act=${act} close=${close}>
    <p>${cluster.status === "Error" ? "svcd repeats the change that failed, from the step where it stopped." : "svcd replaces the machines that the cloud has no more."}</p><//>`;
}

const QUESTIONS = { scale: Scale, delete: Delete, retry: Retry };

const Machine = (each, unwell) => html`<tr key=${each.instance_id}>
  <th scope="row"><${Name}>${each.instance_name}<//></th>
  <td>${each.status ? html`<${State} word=${unwell && each.status === "ACTIVE" ? "unwell" : each.status} />` : html`<span class="faint">not made yet</span>`}</td>
  <td><code>${plain(each.management_ip ?? each.internal_ip ?? "–")}</code></td>
  <td class="wide"><code class="faint">${plain(each.server_id ?? "–")}</code></td>
  <td class="wide amount">${each.volumes.length || "–"}</td>
</tr>`;

function Group({ group, ill }) {
  const [all, showAll] = useState(false);
  const shown = all ? group.instances : group.instances.slice(0, MOST_MACHINES);
  return html`<section class="group" aria-label=${plain(group.name)}>
    <div class="heading"><h3><${Name}>${group.name}<//> <span class="number">${group.instances.length}${group.instances.length === group.count ? "" : ` of ${group.count}`}</span></h3>
      <span class="tags">${group.node_processes.map((each) => html`<span key=${each}>${plain(each)}</span>`)}</span></div>
    ${group.instances.length > 0 && html`<${Table} columns=${{ Machine: "", State: "", Address: "", Server: "wide", Volumes: "wide amount" }}>
      ${shown.map((each) => Machine(each, ill.has(each.instance_name)))}<//>`}
    ${shown.length < group.instances.length && html`<button type="button" onClick=${() => showAll(true)}>Show all ${group.instances.length} machines</button>`}
  </section>`;
}

function Events({ events, query }) {
  const wanted = (query.events ?? "").toLowerCase();
  const found = events.filter((each) => !wanted || `${each.step} ${each.machine} ${each.outcome} ${each.code} ${each.text}`.toLowerCase().includes(wanted));
  const shown = found.slice(-MOST_EVENTS).reverse();
  return html`<section aria-labelledby="events">
    <div class="heading"><h2 id="events">Events <span class="number">${found.length}</span></h2>
      <input class="push" type="search" placeholder="Find in events" aria-label="Find in events" value=${query.events ?? ""} onInput=${(e) => filter({ events: e.target.value })} /></div>
    ${shown.length ? html`<ol class="events" tabindex="0" aria-label="Events">${shown.map((each) => html`<li key=${`${each.at}${each.step}${each.machine}${each.outcome}${each.attempt}`}>
        <span class="faint"><${Time} at=${each.at} /></span><${State} word=${each.outcome} />
        <span><strong>${plain(each.step)}</strong>${each.machine && html` on <${Name}>${each.machine}<//>`} ${each.code && html`<strong class="code">${plain(each.code)}</strong>`}${each.text && html`<${Lines} text=${each.text} />`}</span></li>`)}</ol>
        ${found.length > shown.length && html`<p class="faint">The newest ${shown.length} of ${found.length}.</p>`}`
      : html`<p class="faint">${events.length ? "No event has this text." : "No events."}</p>`}
  </section>`;
}

const Links = ({ info }) => html`<section aria-labelledby="links"><h2 id="links">Links</h2><dl class="links">
  ${Object.entries(info).flatMap(([service, entries]) => Object.entries(entries).map(([name, address]) => html`<div key=${service + name}><dt>${plain(service)} <span class="faint">${plain(name)}</span></dt><dd><${Outside} address=${address} /></dd></div>`))}
</dl></section>`;

const TITLES = { Error: "This cluster failed", Active: "Not all of this cluster is well" };

// Advice speaks of a request to the API; here a button sends it.
const inPage = (text) => text.replace(/retry (the cluster by PUT )?with an empty resize/g, "press Try again").replaceAll("an empty resize", "Try again");

const Health = ({ cluster, wrong }) => html`<${Problem} title=${TITLES[cluster.status] ?? "Not all of this cluster was well before this change"}>
  <${Lines} text=${inPage(wrong) || "svcd gives no reason."} />
  <${Command} text=${commands.why(cluster.id)} /><//>`;

export function Cluster({ id, query }) {
  const { cluster: clusters, job_execution: executions, job, events: kept, loaded } = useStore();
  const [question, ask] = useState("");
  useEffect(() => {
    openEvents(id);
  }, [id]);
  const cluster = clusters.get(id);
  useTick(cluster && isBusy(cluster) ? 500 : 30_000);
  useTitle(cluster?.name ?? "Cluster");
  if (!cluster) return loaded && html`<${Empty} title="This cluster does not exist"><p>It may have been deleted. <a href=${to([])}>See all clusters</a></p><//>`;
  const events = [...(kept.get(id)?.values() ?? [])];
  const all = changes(events);
  const generation = Number(query.change) || all.at(-1)?.generation;
  // svcd forgets what health checks found when a change begins, and looks again after it
  const before = isBusy(cluster) && cluster.status !== "Deleting" ? ailing(events, all.at(-1)?.generation - 1) : "";
  const wrong = isUnwell(cluster) ? cluster.status_description : before;
  const runs = newestFirst([...executions.values()].filter((each) => each.cluster_id === id)).slice(0, 5);
  const Ask = QUESTIONS[question];
  return html`<header class="title">
      <div><p class="faint crumbs"><a href=${to([])}>Clusters</a></p>
        <h1><${Name}>${cluster.name}<//></h1>
        <p class="facts"><${State} word=${cluster.status} of=${isUnwell(cluster) ? "Error" : cluster.status} />
          <span>${plain(cluster.plugin_name)} ${plain(cluster.engine_version)}</span><span>${size(cluster)} machines</span>
          <span>created <${Time} at=${cluster.created_at} /></span>${cluster.is_transient && html`<span>transient</span>`}</p></div>
      <div class="buttons">
        ${isUnwell(cluster) && html`<button type="button" class="primary" onClick=${() => ask("retry")}>Try again</button>`}
        <button type="button" disabled=${cluster.status !== "Active"} title=${cluster.status === "Active" ? "" : "An Active cluster can change its size"} onClick=${() => ask("scale")}>Scale</button>
        <button type="button" class="danger" disabled=${cluster.status === "Deleting"} onClick=${() => ask("delete")}>Delete</button>
      </div></header>
    ${cluster.description && html`<p dir="auto">${plain(cluster.description)}</p>`}
    ${(isUnwell(cluster) || wrong) && html`<${Health} cluster=${cluster} wrong=${wrong} />`}
    ${!isUnwell(cluster) && cluster.status_description && html`<p class="faint"><${Lines} text=${cluster.status_description} /></p>`}
    <section aria-labelledby="change"><div class="heading"><h2 id="change">Provision</h2>
      ${all.length > 1 && html`<${Filter} class="push" label="Change" value=${generation} rows=${all.map((each) => [each.generation, `${each.generation}: ${each.text.slice(0, 60) || "events"}`])} choose=${(e) => filter({ change: e.target.value }, true)} />`}</div>
      ${generation ? html`<${Gantt} key=${generation} events=${events} generation=${generation} cluster=${cluster.name} />` : html`<p class="faint">No events are left.</p>`}
    </section>
    <section aria-labelledby="machines"><h2 id="machines">Machines</h2>${cluster.node_groups.map((group) => html`<${Group} key=${group.name} group=${group} ill=${named(wrong)} />`)}</section>
    ${Object.keys(cluster.info).length > 0 && html`<${Links} info=${cluster.info} />`}
    ${runs.length > 0 && html`<section aria-labelledby="runs"><div class="heading"><h2 id="runs">Newest runs</h2><a class="push" href=${to(["runs"], { cluster: id })}>All runs of this cluster</a></div>
      <ul class="plain">${runs.map((run) => html`<li key=${run.id}><${State} word=${status(run)} of=${outcome(run)} /> <a href=${to(["runs", run.id])}><${Name}>${job.get(run.job_id)?.name ?? "deleted job"}<//></a> <span class="faint"><${Time} at=${run.created_at} /></span></li>`)}</ul></section>`}
    <${Events} events=${events} query=${query} />
    ${Ask && html`<${Ask} cluster=${cluster} close=${() => ask("")} />`}`;
}

// Home: what needs attention, the clusters, and the jobs that run.
import { useEffect, useState } from "./hooks.js";
import { drawnOnce, html } from "./html.js";
import { newCluster, newRun } from "./commands.js";
import { missing, quotas, readOffer } from "./offer.js";
import { Command, Empty, Lines, Name, State, Table, Time, useTick, useTitle } from "./parts.js";
import { created, hasEnded, isBusy, isUnwell, length, newestFirst, outcome, size, status, trouble } from "./records.js";
import { filter, to } from "./route.js";
import { useStore } from "./store.js";
import { count, firstLine, plain } from "./text.js";
import { ago, duration, moment, now } from "./time.js";

const RECENT_MS = 24 * 3600_000;
const MOST = 8; // rows of the list of what needs attention
const ROWS = 200; // rows of a table
const SETTLED_MS = 2000; // without a change of the machines, then the quotas are read again

const LEVELS = { "nearly full": "waiting", full: "failed" };

// What needs attention: failures, then what is unwell, then what waits; of each the newest first. A failure counts
// until a later run of the job has ended. runs: the newest first.
function attention(clusters, runs) {
  const rows = clusters.filter(isUnwell).map((each) => ({
    rank: each.status === "Error" ? 0 : 1, href: to(["clusters", each.id]), word: each.status === "Error" ? "Error" : "unwell", name: each.name,
    kind: "cluster", text: firstLine(each.status_description), at: each.updated_at ?? each.created_at,
  }));
  const again = new Set();
  for (const { run, name } of runs) {
    const { failure, waiting } = run.info;
    const waits = waiting && !failure;
    const isNewest = !again.has(run.job_id);
    if (hasEnded(run)) again.add(run.job_id);
    if (trouble(run) && (waits || (isNewest && created(run) > now() - RECENT_MS))) rows.push({
      rank: waits ? 2 : 0, href: to(["runs", run.id]), word: waits ? "waits" : status(run), of: waits ? "waiting" : outcome(run), name, kind: "run", text: trouble(run), at: waits ? waiting.since : run.end_time ?? run.created_at,
    });
  }
  return rows.sort((a, b) => a.rank - b.rank || moment(b.at) - moment(a.at));
}

// Quotas that soon refuse a new cluster. They lead nowhere: svcd cannot change them.
const tight = ({ resource, name, text, level }) => ({ rank: level === "full" ? 1 : 2, key: resource, word: level, of: LEVELS[level], name, kind: "quota", text: `${text} used: delete what is not needed, or ask the operator of the cloud for more` });

const Attention = ({ rows }) => html`<section class="attention" aria-labelledby="attention">
  <h2 id="attention">Needs attention <span class="number">${rows.length}</span></h2>
  <ul class="cards">${rows.slice(0, MOST).map((each) => html`<li key=${each.href ?? each.key}>
    <${each.href ? "a" : "div"} class=${`card ${each.rank ? "wait" : ""}`} href=${each.href}>
      <span class="top"><${State} word=${each.word} of=${each.of} /><span class="faint">${each.kind}</span>${each.at && html`<span class="push faint"><${Time} at=${each.at} /></span>`}</span>
      <strong><${Name}>${each.name}<//></strong>
      <span class="why" dir="auto">${plain(each.text.slice(0, 400))}</span>
    <//></li>`)}</ul>
  ${rows.length > MOST && html`<p class="faint">and ${count(rows.length - MOST, "more", "more")}: see the clusters below, and <a href=${to(["runs"], { status: "failed" })}>the runs that failed</a>.</p>`}
</section>`;

const Bar = ({ resource, name, text, used, limit, level }) => html`<div key=${resource}>
  <dt>${name}</dt>
  <dd><span class="amount">${text}</span> ${level && html`<${State} word=${level} of=${LEVELS[level]} />`}
    ${limit > 0 && html`<progress class=${level && (level === "full" ? "bad" : "wait")} max=${limit} value=${Math.min(used, limit)} aria-label=${`${name}: part of the quota that is used`}></progress>`}</dd>
</div>`;

// What the cloud tells of the quotas. stamp: changes with the machines, and then they are read again.
function useOffer(stamp) {
  const [{ offer, problem }, set] = useState({});
  const read = () => readOffer().then((found) => set({ offer: found }), (error) => set((before) => ({ ...before, problem: error.message })));
  useEffect(() => {
    const timer = setTimeout(read, offer ? SETTLED_MS : 0);
    return () => clearTimeout(timer);
  }, [stamp]);
  return { known: offer && quotas(offer), title: problem ? "The quotas cannot be read" : "Some quotas cannot be read", faults: problem ? [problem] : offer ? missing(offer) : [], read };
}

const Quota = ({ known, title, faults, read }) => html`<section class="quotas" aria-labelledby="quotas"><h2 id="quotas">Quota of the project</h2>
  ${known ? html`<dl>${known.map(Bar)}</dl>` : !faults[0] && html`<p class="faint" role="status">Reading the quotas…</p>`}
  ${faults[0] && html`<div class="notice" role="status"><strong>${title}</strong> <${Lines} text=${faults.join("\n")} /><button type="button" class="small" onClick=${read}>Try again</button></div>`}
</section>`;

const ClusterRow = drawnOnce((cluster) => html`<tr key=${cluster.id}>
  <th scope="row"><a href=${to(["clusters", cluster.id])}><${Name}>${cluster.name}<//></a></th>
  <td><${State} word=${cluster.status} of=${isUnwell(cluster) && cluster.status === "Active" ? "unwell" : cluster.status} /></td>
  <td class="amount">${size(cluster)}</td>
  <td class="wide">${plain(cluster.plugin_name)} ${plain(cluster.engine_version)}</td>
  <td class="wide"><${Time} at=${cluster.created_at} /></td>
</tr>`);

// A text that changes when machines come or go.
const machinesStamp = (clusters) => clusters.map((each) => `${each.status}${size(each)}`).join();

const RunRow = ({ run, name, cluster }) => html`<tr key=${run.id}>
  <th scope="row"><a href=${to(["runs", run.id])}><${Name}>${name}<//></a></th>
  <td><${State} word=${status(run)} /></td>
  <td><${Progress} run=${run} /></td>
  <td class="wide">${cluster ? html`<a href=${to(["clusters", cluster.id])}><${Name}>${cluster.name}<//></a>` : html`<span class="faint">–</span>`}</td>
  <td class="wide amount">${duration(length(run, now()))}</td>
</tr>`;

export const Progress = ({ run }) => {
  const part = hasEnded(run) && status(run) === "SUCCEEDED" ? 1 : run.progress;
  return part === null || part === undefined
    ? html`<span class="faint">–</span>`
    : html`<progress max="1" value=${part} aria-label="Progress"></progress> <span class="amount">${Math.round(part * 100)} %</span>`;
};

export function Home({ query }) {
  const { cluster, job_execution: executions, job } = useStore();
  const clusters = newestFirst(cluster.values());
  const runs = newestFirst(executions.values()).map((run) => ({ run, name: job.get(run.job_id)?.name ?? "deleted job", cluster: cluster.get(run.cluster_id) }));
  const running = runs.filter((each) => !hasEnded(each.run));
  const offer = useOffer(machinesStamp(clusters));
  const rows = [...attention(clusters, runs), ...(offer.known ?? []).filter((each) => each.level).map(tight)].sort((a, b) => a.rank - b.rank);
  const wanted = (query.q ?? "").toLowerCase();
  const shown = clusters.filter((each) => each.name.toLowerCase().includes(wanted) || each.status.toLowerCase() === wanted);
  useTick(running.length || clusters.some(isBusy) ? 1000 : 30_000);
  useTitle("Home");
  return html`<h1 class="unseen">Home</h1>
    ${rows.length ? html`<${Attention} rows=${rows} />` : clusters.length > 0 && !clusters.some(isBusy) && html`<p class="well"><${State} word="All well" of="done" /></p>`}
    <${Quota} ...${offer} />
    <section aria-labelledby="clusters">
      <div class="heading"><h2 id="clusters">Clusters <span class="number">${clusters.length}</span></h2><a class="button" href=${to(["launch"])}>New cluster</a>
        ${clusters.length > 5 && html`<input class="push" type="search" placeholder="Find by name or status" aria-label="Find clusters" value=${query.q ?? ""} onInput=${(e) => filter({ q: e.target.value })} />`}</div>
      ${clusters.length
        ? html`<${Table} columns=${{ Name: "", Status: "", Machines: "amount", Plugin: "wide", Created: "wide" }}>
            ${shown.slice(0, ROWS).map((each) => ClusterRow(each, ago(created(each))))}<//>
          ${!shown.length && html`<p class="faint">No cluster has this name or status.</p>`}
          ${shown.length > ROWS && html`<p class="faint">The newest ${ROWS} of ${shown.length}: type a part of the name to find others.</p>`}`
        : html`<${Empty} title="No clusters yet"><p><a href=${to(["launch"])}>Create one here</a> or with the command line; it appears as it is built.</p><${Command} text=${newCluster} /><//>`}
    </section>
    <section aria-labelledby="running">
      <div class="heading"><h2 id="running">Running jobs <span class="number">${running.length}</span></h2>${runs.length > 0 && html`<a class="push" href=${to(["runs"])}>All runs</a>`}</div>
      ${running.length
        ? html`<${Table} columns=${{ Job: "", Status: "", Progress: "", Cluster: "wide", For: "wide amount" }}>${running.slice(0, ROWS).map(RunRow)}<//>`
        : html`<${Empty} title="No job runs">${clusters.length > 0 && html`<p>Start one with the command line.</p><${Command} text=${newRun} />`}<//>`}
    </section>`;
}

// Home: what needs attention, the clusters, and the jobs that run.
import { html } from "./html.js";
import { FewClusters } from "./clusters.js";
import { FirstSteps } from "./first.js";
import { useRead } from "./images.js";
import { missing, quotas, readOffer } from "./offer.js";
import { Head, Lines, Name, Section, State, Time, useTick } from "./parts.js";
import {
  created,
  hasEnded,
  hasFailed,
  isBusy,
  isUnwell,
  isWithin,
  jobName,
  newestFirst,
  outcome,
  size,
  trouble,
} from "./records.js";
import { to } from "./route.js";
import { RunTable } from "./run_table.js";
import { useStore } from "./store.js";
import { count, firstLine, plain } from "./text.js";
import { moment, now } from "./time.js";

const RECENT_MS = 24 * 3600_000;
const MOST = 8; // rows of the list of what needs attention
const ROWS = 200; // rows of a table
const LONGEST = 400; // characters of a reason

const LEVELS = { "nearly full": "waiting", full: "failed" };

// A card of what needs attention. rank: 0 for a failure, 1 for what is unwell, 2 for what waits.
function cardOfCluster({ id, name, status: word, status_description: text, updated_at, created_at }) {
  const failed = word === "Error";
  const head = { rank: failed ? 0 : 1, word: failed ? "Error" : "unwell", kind: "cluster" };
  return { ...head, href: to(["clusters", id]), name, text: firstLine(text), at: updated_at ?? created_at };
}

function cardOfRun(run, name) {
  const { failure, waiting } = run.info;
  const card = { href: to(["runs", run.id]), name, kind: "run", text: trouble(run) };
  if (waiting && !failure) return { ...card, rank: 2, word: "waits", of: "waiting", at: waiting.since };
  return { ...card, rank: 0, word: outcome(run), at: run.end_time ?? run.created_at };
}

// Quotas that soon refuse a new cluster. They lead nowhere: svcd cannot change them.
function cardOfQuota({ resource, name, text, level }) {
  const head = { rank: level === "full" ? 1 : 2, word: level, of: LEVELS[level], kind: "quota" };
  const advice = "delete what is not needed, or ask the operator of the cloud for more";
  return { ...head, key: resource, name, text: `${text} used: ${advice}` };
}

// What needs attention: failures, then what is unwell, then what waits; of each the newest first. A failure counts
// until a later run of the job has ended. runs: the newest first.
function attention(clusters, runs, jobs) {
  const rows = clusters.filter(isUnwell).map(cardOfCluster);
  const again = new Set();
  for (const run of runs) {
    const isNewest = !again.has(run.job_id);
    if (hasEnded(run)) again.add(run.job_id);
    if (!trouble(run)) continue;
    const card = cardOfRun(run, jobName(jobs, run));
    if (card.rank || (isNewest && created(run) > now() - RECENT_MS)) rows.push(card);
  }
  return rows.sort((a, b) => a.rank - b.rank || moment(b.at) - moment(a.at));
}

const Card = ({ card: { href, rank, word, of, kind, at, name, text } }) => html`<li>
  <${href ? "a" : "div"} class=${`card ${rank ? "wait" : ""}`} href=${href}>
    <span class="top">
      <${State} word=${word} of=${of} />
      <span class="faint">${kind}</span>
      ${at && html`<span class="push faint"><${Time} at=${at} /></span>`}
    </span>
    <strong><${Name}>${name}<//></strong>
    <span class="why" dir="auto">${plain(text.slice(0, LONGEST))}</span>
  <//>
</li>`;

function Attention({ rows }) {
  const others = count(rows.length - MOST, "more", "more");
  return html`<${Section} class="attention" id="attention" title="Needs attention" number=${rows.length}>
    <ul class="cards">
      ${rows.slice(0, MOST).map((each) => html`<${Card} key=${each.href ?? each.key} card=${each} />`)}
    </ul>
    ${rows.length > MOST && html`<p class="faint">
      and ${others}: see <a href=${to(["clusters"], { status: "unwell" })}>the clusters that need attention</a>
      and <a href=${to(["runs"], { status: "failed" })}>the runs that failed</a>.
    </p>`}
  <//>`;
}

function Bar({ resource, name, text, used, limit, level }) {
  const tone = level && (level === "full" ? "bad" : "wait");
  const label = `${name}: part of the quota that is used`;
  return html`<div key=${resource}>
    <dt>${name}</dt>
    <dd>
      <span class="amount">${text}</span>${" "}
      ${level && html`<${State} word=${level} of=${LEVELS[level]} />`}
      ${limit > 0 && html`
        <progress class=${tone} max=${limit} value=${Math.min(used, limit)} aria-label=${label}></progress>`}
    </dd>
  </div>`;
}

// What the cloud tells of the quotas. stamp: changes with the machines.
function useOffer(stamp) {
  const { data: offer, problem, again: read } = useRead(readOffer, stamp);
  const known = offer && quotas(offer);
  if (problem) return { known, read, title: "The quotas cannot be read", faults: [problem] };
  return { known, read, title: "Some quotas cannot be read", faults: offer ? missing(offer) : [] };
}

const Quota = ({ known, title, faults, read }) => html`
  <${Section} class="quotas" id="quotas" title="Quota of the project">
    ${known
      ? html`<dl>${known.map(Bar)}</dl>`
      : !faults[0] && html`<p class="faint" role="status">Reading the quotas…</p>`}
    ${faults[0] && html`<div class="notice" role="status">
      <strong>${title}</strong> <${Lines} text=${faults.join("\n")} />
      <button type="button" class="small" onClick=${read}>Try again</button>
    </div>`}
  <//>`;

// A text that changes when machines come or go.
const machinesStamp = (clusters) => clusters.map((each) => `${each.status}${size(each)}`).join();

function Running({ runs, running }) {
  const failed = runs.filter((run) => hasFailed(run) && isWithin(run, 24, now())).length;
  const side = html`
    <a class="button" href=${to(["run"])}>Run a program</a>
    ${failed > 0 && html`<a href=${to(["runs"], { status: "failed", hours: 24 })}>${failed} failed in 24 hours</a>`}
    ${runs.length > 0 && html`<a class="push" href=${to(["runs"])}>All runs</a>`}`;
  return html`<${Section} id="running" title="Running jobs" number=${running.length} side=${side}>
    ${running.length
      ? html`<${RunTable} runs=${running.slice(0, ROWS)} />`
      : html`<p class="faint">No job runs.</p>`}
  <//>`;
}

export function Home() {
  const { cluster, job_execution: executions, job, loaded } = useStore();
  const clusters = newestFirst(cluster.values());
  const runs = newestFirst(executions.values());
  const running = runs.filter((run) => !hasEnded(run));
  const isChanging = clusters.some(isBusy);
  const offer = useOffer(machinesStamp(clusters));
  const tight = (offer.known ?? []).filter((each) => each.level);
  const rows = [...attention(clusters, runs, job), ...tight.map(cardOfQuota)].sort((a, b) => a.rank - b.rank);
  useTick(running.length > 0 || isChanging);
  const isFirst = loaded && !runs.length;
  const well = clusters.length > 0 && !isChanging && html`<p class="well"><${State} word="All well" of="done" /></p>`;
  return html`<${Head} title="Home" class="unseen" />
    ${rows.length ? html`<${Attention} rows=${rows} />` : well}
    <${Quota} ...${offer} />
    ${isFirst && html`<${FirstSteps} clusters=${clusters.length} />`}
    ${(clusters.length > 0 || runs.length > 0) && html`<${FewClusters} clusters=${clusters} />`}
    ${runs.length > 0 && html`<${Running} runs=${runs} running=${running} />`}`;
}

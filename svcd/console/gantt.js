// The drawing of a provision, as numbers: rows of machines with bars of steps. Pure.
import { moment } from "./time.js";

const STATUSES = new Set(["Waiting", "Validating", "Spawning", "Preparing", "Configuring", "Starting", "Decommissioning", "Active", "Deleting", "Error"]);

// What a job waited for is no part of a provision.
const isJobs = (event) => event.step === "job";

// The changes of a cluster (create, resize, delete…), oldest first: generation and what was asked.
export function changes(events) {
  const found = new Map();
  for (const each of events) {
    if (!found.has(each.generation)) found.set(each.generation, { generation: each.generation, text: "", at: moment(each.at) });
    if (each.step === "request" && each.outcome === "accepted") found.get(each.generation).text = each.text;
  }
  return [...found.values()].sort((a, b) => a.generation - b.generation);
}

// The bars of one change. Each: step, machine, attempt, begin, end, open (it goes on), outcome, code, text, waitedFor.
function barsOf(events, end) {
  const found = new Map();
  for (const each of events) {
    const begin = moment(each.began);
    if (begin === null) continue;
    const key = JSON.stringify([each.step, each.machine, each.began]);
    const known = found.get(key);
    if (known && !known.open && each.ended === null) continue; // its end is known
    const ended = moment(each.ended);
    found.set(key, {
      step: each.step, machine: each.machine, attempt: each.attempt, outcome: each.outcome,
      code: each.code, text: each.text, until: moment(each.until), waitedFor: each.waited_for,
      begin, end: Math.max(begin, ended ?? end), open: ended === null, path: false,
    });
  }
  return [...found.values()].sort((a, b) => a.begin - b.begin || a.end - b.end);
}

// The statuses of the cluster as bars, each until the next one.
function phasesOf(events, end) {
  const moves = events.filter((each) => STATUSES.has(each.step) && each.outcome !== "waiting");
  const phases = moves.map((each, at) => ({
    step: each.step, begin: moment(each.at), end: at + 1 < moves.length ? moment(moves[at + 1].at) : end,
    open: at + 1 === moves.length, failed: each.outcome === "failed", until: moment(each.until),
  }));
  const settled = phases.at(-1)?.step;
  if (settled === "Active" || settled === "Error" || phases.at(-1)?.failed) phases.pop();
  return phases;
}

// Mark the chain of steps that decided how long the change took: from the last one back, each to
// the step that it waited for.
function markPath(bars) {
  const later = (a, b) => a.end - b.end || (a.machine !== "") - (b.machine !== "") || a.begin - b.begin;
  let at = bars.reduce((last, each) => (last && later(last, each) >= 0 ? last : each), null);
  const path = [];
  while (at && !at.path) {
    at.path = true;
    path.unshift(at);
    const wanted = at.waitedFor;
    const limit = at.begin + 1;
    at = wanted && bars.reduce((best, each) =>
      each.step === wanted.step && each.machine === wanted.machine && !each.path && each.end <= limit && (!best || each.end > best.end) ? each : best, null);
  }
  return path;
}

// Bars that overlap get lanes of their own.
function lanesOf(bars) {
  const ends = [];
  for (const each of bars) {
    let lane = ends.findIndex((end) => end <= each.begin);
    if (lane < 0) lane = ends.length;
    ends[lane] = each.end;
    each.lane = lane;
  }
  return ends.length;
}

// The drawing of the change `generation`. now: the time up to which open bars reach.
export function drawing(events, generation, now) {
  const own = events
    .filter((each) => each.generation === generation && !isJobs(each))
    .sort((a, b) => (a.number ?? 0) - (b.number ?? 0) || moment(a.at) - moment(b.at));
  if (!own.length) return null;
  const begin = moment(own[0].at);
  const settled = own.some((each) => (each.step === "Active" && each.outcome === "done") || each.step === "Error" || each.outcome === "failed");
  const ends = own.filter((each) => each.step !== "health").map((each) => moment(each.ended ?? each.at));
  const last = Math.max(begin, ...ends);
  const until = settled ? last : Math.max(last, now);
  const bars = barsOf(own, until);
  // A wait for a server has one event, at its end. Until then the drawing shows it after the create call.
  if (!settled) for (const last of new Map(bars.map((each) => [each.machine, each])).values()) {
    const { step, machine, outcome, end } = last;
    if (step === "create server" && outcome === "done") bars.push({ ...last, step: "wait for server", waitedFor: { step, machine }, begin: end, end: until, open: true });
  }
  const start = Math.min(begin, ...bars.map((each) => each.begin));
  const path = markPath(bars);
  const machines = new Map();
  for (const each of bars) {
    if (!machines.has(each.machine)) machines.set(each.machine, []);
    machines.get(each.machine).push(each);
  }
  const rows = [...machines].map(([machine, own]) => ({ machine, bars: own, lanes: lanesOf(own) }));
  rows.sort((a, b) => (a.machine < b.machine ? -1 : a.machine > b.machine ? 1 : 0));
  return { start, end: Math.max(until, start + 1), settled, phases: phasesOf(own, until), rows, path, failures: failuresOf(own) };
}

// What went wrong, once for each step and code: with the machines and the newest text.
function failuresOf(events) {
  const found = new Map();
  for (const each of events) {
    if (each.step === "health" || !(each.outcome === "failed" || (each.outcome === "retry" && each.code))) continue;
    if (STATUSES.has(each.step) && found.size) continue; // the status repeats the failure of a step
    const key = JSON.stringify([each.step, each.code, each.outcome]);
    if (!found.has(key)) found.set(key, { step: each.step, code: each.code, outcome: each.outcome, times: 0, machines: new Set() });
    const one = found.get(key);
    one.times += 1;
    one.text = each.text;
    if (each.machine) one.machines.add(each.machine);
  }
  return [...found.values()].map((each) => ({ ...each, machines: [...each.machines] }));
}

// The name of a machine without the name of its cluster, which all of them have.
export const short = (machine, cluster) => (cluster && machine.startsWith(`${cluster}-`) ? machine.slice(cluster.length + 1) : machine);

// Where the marks of the time axis are: a round number of seconds apart, at most `most` of them.
export function marks(length, most = 6) {
  const steps = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400].map((s) => s * 1000);
  const step = steps.find((each) => length / each <= most) ?? length / most;
  const found = [];
  for (let at = 0; at <= length * 1.0001; at += step) found.push(at);
  return found;
}

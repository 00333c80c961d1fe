// The drawing of a provision, as numbers: rows of machines with bars of steps. Pure.
import { moment } from "./time.js";

// Seconds between two marks of the time axis.
const STEPS_S = [
  ...[0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30],
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * 60),
  ...[1, 2, 4, 12, 24].map((hours) => hours * 3600),
];

// The changes of a cluster (create, resize, delete…), oldest first: generation and what was asked.
export function changes(events) {
  const found = new Map();
  for (const each of events) {
    const { generation, kind, text } = each;
    if (!found.has(generation)) found.set(generation, { generation, text: "", at: moment(each.at) });
    if (kind === "request") found.get(generation).text = text;
  }
  return [...found.values()].sort((a, b) => a.generation - b.generation);
}

// The bars of one change. Each: step, kind, machine, attempt, begin, end, open (it goes on), outcome, code, text, waitedFor.
function barsOf(events, end) {
  const found = new Map();
  for (const each of events) {
    const begin = moment(each.began);
    if (begin === null) continue;
    const key = JSON.stringify([each.step, each.machine, each.began]);
    const known = found.get(key);
    if (known && !known.open && each.ended === null) continue; // its end is known
    const ended = moment(each.ended);
    const { step, kind, machine, attempt, outcome, code, text, waited_for: waitedFor } = each;
    const times = { begin, end: Math.max(begin, ended ?? end), open: ended === null, until: moment(each.until) };
    found.set(key, { step, kind, machine, attempt, outcome, code, text, waitedFor, ...times, path: false });
  }
  return [...found.values()].sort((a, b) => a.begin - b.begin || a.end - b.end);
}

// The statuses of the cluster as bars, each until the next one.
function phasesOf(events, end) {
  const moves = events.filter((each) => each.kind === "status" && each.outcome !== "waiting");
  const phases = moves.map((each, at) => {
    const next = moves[at + 1];
    return {
      step: each.step,
      begin: moment(each.at),
      end: next ? moment(next.at) : end,
      open: !next,
      failed: each.outcome === "failed",
      until: moment(each.until),
    };
  });
  const settled = phases.at(-1)?.step;
  if (settled === "Active" || settled === "Error" || phases.at(-1)?.failed) phases.pop();
  return phases;
}

// The bar of the step that `bar` waited for: the last try that ended before it; null when that is not known.
function cause(bars, { waitedFor: wanted, begin }) {
  if (!wanted) return null;
  const tries = bars.filter((each) => each.step === wanted.step && each.machine === wanted.machine && !each.path);
  const over = tries.filter((each) => each.end <= begin + 1);
  return over.reduce((best, each) => (best && each.end <= best.end ? best : each), null);
}

// Mark the chain of steps that decided how long the change took: from the last one back, each to
// the step that it waited for. A stage is no step: its bar is around those of its steps on machines.
function markPath(bars) {
  const isIn = (a, b) => a.machine && !b.machine && a.begin >= b.begin && a.end <= b.end;
  const steps = bars.filter((each) => !bars.some((other) => isIn(other, each)));
  const later = (a, b) => a.end - b.end || a.begin - b.begin;
  let at = steps.reduce((last, each) => (last && later(last, each) >= 0 ? last : each), null);
  const path = [];
  while (at && !at.path) {
    at.path = true;
    path.unshift(at);
    at = cause(bars, at);
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

// A wait for a server has one event, at its end. Until then the drawing shows it after the create call.
function waitsOf(bars, until) {
  const last = [...new Map(bars.map((each) => [each.machine, each])).values()];
  const created = last.filter((each) => each.step === "create server" && each.outcome === "done");
  return created.map((each) => ({
    ...each,
    step: "wait for server",
    kind: "wait",
    waitedFor: { step: each.step, machine: each.machine },
    begin: each.end,
    end: until,
    open: true,
  }));
}

// The drawing of the change `generation`. now: the time up to which open bars reach.
export function drawing(events, generation, now) {
  const own = events
    .filter((each) => each.generation === generation && each.kind !== "job") // jobs are no part of a provision
    .sort((a, b) => (a.number ?? 0) - (b.number ?? 0) || moment(a.at) - moment(b.at));
  if (!own.length) return null;
  const begin = moment(own[0].at);
  const settled = own.some(
    ({ step, outcome }) => (step === "Active" && outcome === "done") || step === "Error" || outcome === "failed",
  );
  const ends = own.filter((each) => each.kind !== "health").map((each) => moment(each.ended ?? each.at));
  const last = Math.max(begin, ...ends);
  const until = settled ? last : Math.max(last, now);
  const bars = barsOf(own, until);
  if (!settled) bars.push(...waitsOf(bars, until));
  const start = Math.min(begin, ...bars.map((each) => each.begin));
  const path = markPath(bars);
  const machines = new Map();
  for (const each of bars) {
    if (!machines.has(each.machine)) machines.set(each.machine, []);
    machines.get(each.machine).push(each);
  }
  const rows = [...machines].map(([machine, own]) => ({ machine, bars: own, lanes: lanesOf(own) }));
  rows.sort((a, b) => (a.machine < b.machine ? -1 : a.machine > b.machine ? 1 : 0));
  const phases = phasesOf(own, until);
  return { start, end: Math.max(until, start + 1), settled, phases, rows, path, failures: failuresOf(own) };
}

// What went wrong, once for each step and code: with the machines and the newest text.
function failuresOf(events) {
  const found = new Map();
  for (const each of events) {
    const { step, kind, code, outcome } = each;
    if (kind === "health" || !(outcome === "failed" || (outcome === "retry" && code))) continue;
    if (kind === "status" && found.size) continue; // the status repeats the failure of a step
    const key = JSON.stringify([step, code, outcome]);
    if (!found.has(key)) found.set(key, { step, code, outcome, times: 0, machines: new Set() });
    const one = found.get(key);
    one.times += 1;
    one.text = each.text;
    if (each.machine) one.machines.add(each.machine);
  }
  return [...found.values()].map((each) => ({ ...each, machines: [...each.machines] }));
}

// The name of a machine without the name of its cluster, which all of them have.
export function short(machine, cluster) {
  return cluster && machine.startsWith(`${cluster}-`) ? machine.slice(cluster.length + 1) : machine;
}

// Where the marks of the time axis are: a round number of seconds apart, at most `most` of them.
export function marks(length, most = 6) {
  const steps = STEPS_S.map((seconds) => seconds * 1000);
  const step = steps.find((each) => length / each <= most) ?? length / most;
  const found = [];
  for (let at = 0; at <= length * 1.0001; at += step) found.push(at);
  return found;
}

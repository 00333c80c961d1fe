// The drawing of a change of a cluster, as numbers: rows of machines with bars of steps. Pure.
import { moment } from "./time.js";

// Seconds between two marks of the time axis.
const STEPS_S = [
  ...[0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30],
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * 60),
  ...[1, 2, 4, 12, 24].map((hours) => hours * 3600),
];

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

// The span of a step or status: what goes on reaches up to `until`.
const span = (each, until) => {
  const begin = moment(each.began);
  return { ...each, begin, end: Math.max(begin, moment(each.ended) ?? until), open: !each.ended };
};

// The drawing of the steps of a change. now: the time up to which open bars reach.
export function drawing({ began, ended, phases, steps, longest_path: path, faults }, now) {
  const start = moment(began);
  const end = moment(ended) ?? Math.max(now, ...steps.map((each) => moment(each.ended) ?? start));
  const bars = steps.map((each) => span(each, end));
  const machines = new Map();
  for (const each of bars) {
    if (!machines.has(each.machine)) machines.set(each.machine, []);
    machines.get(each.machine).push(each);
  }
  const rows = [...machines].map(([machine, own]) => ({ machine, bars: own, lanes: lanesOf(own) }));
  rows.sort((a, b) => (a.machine < b.machine ? -1 : a.machine > b.machine ? 1 : 0));
  const kinds = new Map(steps.map(({ step, kind }) => [step, kind]));
  return {
    start,
    end: Math.max(end, start + 1),
    settled: Boolean(ended),
    phases: phases.map((each) => span(each, end)),
    rows,
    path: path.map((at) => bars[at]),
    faults: faults.map((each) => ({ ...each, kind: kinds.get(each.step) })),
  };
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

// The drawing of a change of a cluster, as numbers: rows of machines with bars of steps. Pure.
import { moment } from "./time.js";

// Seconds between two marks of the time axis.
const STEPS_S = [
  ...[0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30],
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * 60),
  ...[1, 2, 4, 12, 24].map((hours) => hours * 3600),
];

const FEWEST = 4; // alike machines that share a row

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

const TROUBLES = ["failed", "retry", "replaced"]; // outcomes
export const isTrouble = ({ outcome }) => TROUBLES.includes(outcome);

// The steps of alike machines as bars of one row: of each step from its first begin to its last end.
function sharedBars(key, rows) {
  const shared = new Map();
  for (const { step, kind, begin, end, open } of rows.flatMap((row) => row.bars)) {
    if (!shared.has(step)) shared.set(step, { step, kind, begin, end, machine: key, machines: 0, done: 0 });
    const bar = shared.get(step);
    bar.begin = Math.min(bar.begin, begin);
    bar.end = Math.max(bar.end, end);
    bar.open ||= open;
    bar.machines += 1;
    bar.done += !open;
  }
  return [...shared.values()].sort((a, b) => a.begin - b.begin);
}

// The rows with one row for machines that are alike: of one group, with the same first step, and none of them notable.
export function folded(rows) {
  const groups = new Map();
  for (const row of rows) {
    const key = `${row.group} ${row.bars[0].step}`;
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(row);
  }
  return [...groups].flatMap(([key, all]) => {
    const alike = all.filter((row) => row.notable === false);
    if (alike.length < FEWEST) return all;
    const bars = sharedBars(key, alike);
    const { group } = alike[0];
    const done = alike.filter((row) => row.done).length;
    return [...all.filter((row) => row.notable), { machine: key, group, bars, lanes: lanesOf(bars), alike, done }];
  });
}

// The drawing of the steps of a change. now: the time up to which open bars reach.
export function drawing({ began, ended, phases, machines, steps, longest_path: path }, now) {
  const start = moment(began);
  const end = moment(ended) ?? Math.max(now, ...steps.map((each) => moment(each.ended) ?? start));
  const bars = steps.map((each) => span(each, end));
  const rows = [{ machine: "" }, ...machines].map((row) => ({ ...row, bars: [] }));
  const named = new Map(rows.map((row) => [row.machine, row.bars]));
  for (const bar of bars) named.get(bar.machine).push(bar);
  for (const row of rows) row.lanes = lanesOf(row.bars);
  return {
    start,
    end: Math.max(end, start + 1),
    settled: Boolean(ended),
    phases: phases.map((each) => span(each, end)),
    rows: rows.filter((row) => row.bars.length),
    path: path.map((at) => bars[at]),
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

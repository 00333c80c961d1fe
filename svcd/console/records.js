// What records mean to a person. Pure.
import { firstLine } from "./text.js";
import { moment } from "./time.js";

export const ENDED = new Set(["SUCCEEDED", "KILLED", "FAILED"]);
const RESTING = new Set(["Active", "Error"]);

export const isBusy = (cluster) => !RESTING.has(cluster.status);
export function isUnwell({ status: word, status_description: text }) {
  return word === "Error" || Boolean(word === "Active" && text);
}

// The names of machines in a text, as far as they may be some.
export const named = (text) => new Set(text.split(/[^\w.-]+/).map((word) => word.replace(/[.-]+$/, "")));

export const machines = (cluster) => cluster.node_groups.flatMap((group) => group.instances);

export function size(cluster) {
  const wanted = cluster.node_groups.reduce((sum, group) => sum + group.count, 0);
  const there = machines(cluster).filter((each) => each.status === "ACTIVE").length;
  return there === wanted ? `${wanted}` : `${there} of ${wanted}`;
}

// The name of a run's job. jobs: by their ids.
export const jobName = (jobs, run) => jobs.get(run.job_id)?.name ?? "deleted job";

// The beginning of a run's id: short, and commands accept it.
export const shortId = (run) => run.id.slice(0, 8);

export const status = (run) => run.info?.status ?? "Pending";
const WORDS = { PREP: "Preparing", RUNNING: "Running", SUSPENDED: "Suspended", SUCCEEDED: "Succeeded", FAILED: "Failed" };
const BY_OTHERS = ["KILLED_ELSEWHERE", "CLUSTER_GONE"];
// A run's status in words of people: the engine says KILLED for a program that failed, too. As the commands have it.
export function outcome(run) {
  const word = status(run);
  if (word !== "KILLED") return WORDS[word] ?? word;
  const { failure } = run.info;
  if (!failure) return "Cancelled";
  return BY_OTHERS.includes(failure.code) ? "Killed" : "Failed";
}
// Whether a run failed, by any cause.
export const hasFailed = (run) => ["Failed", "Killed"].includes(outcome(run));
// Whether a run ended, or else began, within so many hours.
export const isWithin = (run, hours, now) => (moment(run.end_time) ?? created(run)) > now - hours * 3600_000;
// The step of an event as a deed: `wait for Oozie` where the API has `Oozie`.
export function stepTitle({ step, kind }) {
  return kind === "wait" && !step.startsWith("wait ") ? `wait for ${step}` : step;
}
export const hasEnded = (run) => ENDED.has(status(run));
export const created = (row) => moment(row.created_at) ?? 0;

// From begin to end, or until now.
export function length(run, now) {
  const begin = moment(run.start_time) ?? created(run);
  return Math.max(0, (moment(run.end_time) ?? now) - begin);
}

// By the texts of the times, which have one form: reading a thousand of them takes longer than the sort.
const stampOf = (row) => row.created_at ?? "";
function isOlder(a, b) {
  return stampOf(a) === stampOf(b) ? a.id < b.id : stampOf(a) < stampOf(b);
}
export const newestFirst = (rows) => [...rows].sort((a, b) => (isOlder(a, b) ? 1 : -1));

const ID_PART = 4; // characters: fewer begin too many ids

// Whether a text is a part of the name or the beginning of the id.
export function matches(text, name, id) {
  const wanted = text.trim().toLowerCase();
  return name.toLowerCase().includes(wanted) || (wanted.length >= ID_PART && id.startsWith(wanted));
}

// The clusters that a filter offers.
export function clusterChoices(clusters) {
  const newest = newestFirst(clusters.values()).slice(0, 200);
  return [["", "all"], ...newest.map((each) => [each.id, each.name])];
}

// Why a run needs attention, else "".
export function trouble(run) {
  const { failure, waiting } = run.info ?? {};
  if (failure) return `${failure.code}: ${firstLine(failure.text)}`;
  if (waiting) return firstLine(waiting.text);
  return status(run) === "FAILED" ? "the engine gives no reason" : "";
}

// What the page knows: the project's records, listed once and then kept up to date by `watch`.
import { useEffect, useState } from "./hooks.js";
import { get, path } from "./api.js";
import { session } from "./session.js";
import { share } from "./tabs.js";

// Kind -> the path of its list, and the key of the rows in the answer.
const LISTS = {
  cluster: ["clusters", "clusters"],
  job_execution: ["job-executions", "job_executions"],
  job: ["jobs", "jobs"],
  data_source: ["data-sources", "data_sources"],
  job_binary: ["job-binaries", "binaries"],
};

const RETRY_MS = 3000; // until lists that could not be read are read again
const MOST = 1000; // events of a cluster; the newest stay
const FINAL = [401, 403, 404]; // another try would get the same answer

export const store = {
  cluster: new Map(),
  job_execution: new Map(),
  job: new Map(),
  data_source: new Map(),
  job_binary: new Map(),
  gone: {}, // the record that was deleted last
  told: "", // a word for the list that the page of this record leads to
  events: new Map(), // cluster id -> its events by key; only of clusters that were opened
  loaded: false,
  problem: "",
  live: "waiting", // live, waiting, ended
  why: "",
};

const listeners = new Set();
let planned = false;
let version = 0; // grows with each change

// Draw again, at most once a frame. A hidden tab gets no frames, and needs none.
function changed() {
  version += 1;
  if (planned) return;
  planned = true;
  const draw = () => {
    planned = false;
    for (const each of listeners) each();
  };
  if (document.hidden) setTimeout(draw, 200);
  else requestAnimationFrame(draw);
}

export function useStore() {
  const [, set] = useState(version);
  useEffect(() => {
    const draw = () => set(version);
    listeners.add(draw);
    draw(); // what has changed since the first drawing
    return () => listeners.delete(draw);
  }, []);
  return store;
}

function keyOf({ at, generation, step, machine, outcome, attempt, text }) {
  return JSON.stringify([at, generation, step, machine, outcome, attempt, text]);
}

function keepEvents(clusterId, events) {
  const known = store.events.get(clusterId);
  if (!known) return;
  for (const each of events) known.set(keyOf(each), each);
  for (const key of known.keys()) {
    if (known.size <= MOST) break;
    known.delete(key);
  }
}

// The changes that came while lists were read; null when none are being read.
let waiting = null;
let again = false; // a stream has begun while lists were read: they may lack what came before it

function apply(kind, row) {
  if (kind === "cluster_event") return keepEvents(row.cluster_id, [row]);
  const rows = store[kind];
  if (!(rows instanceof Map) || !(kind in LISTS)) return;
  if (row.change === "deleted") {
    store.gone = rows.get(row.id) ?? store.gone;
    rows.delete(row.id);
    if (kind === "cluster") store.events.delete(row.id);
  } else rows.set(row.id, row);
}

// A record that an action has answered, or has deleted: shown at once, before `watch` reports it.
// before: the record when the action was sent; `watch` may have reported a newer one than the answer since.
export function keep(kind, row, before) {
  if (row.change !== "deleted" && store[kind].get(row.id) !== before) return;
  apply(kind, row);
  changed();
}

// Read all lists, also those that were refused before. A stream that begins anew may be of a restored database.
async function listAnew() {
  if (waiting) {
    again = true;
    return;
  }
  const { signal } = session;
  waiting = [];
  let fault = null;
  try {
    const kinds = Object.entries(LISTS);
    const lists = await Promise.all(kinds.map(([, [name]]) => get(path(name))));
    kinds.forEach(([kind, [, key]], at) => {
      store[kind] = new Map(lists[at][key].map((row) => [row.id, row]));
    });
    for (const id of store.events.keys()) if (!store.cluster.has(id)) store.events.delete(id);
    await openAll([...store.events.keys()], true);
  } catch (error) {
    fault = error;
  }
  if (signal.aborted) return;
  for (const [kind, row] of waiting) apply(kind, row);
  waiting = null;
  store.problem = fault ? fault.message : "";
  store.loaded ||= !fault;
  changed();
  if (again) {
    again = false;
    listAnew();
  } else if (fault && !FINAL.includes(fault.status)) setTimeout(() => signal.aborted || listAnew(), RETRY_MS);
}

// Read the events of a cluster, and keep them up to date from now on.
// anew: forget those that are known.
export async function openEvents(clusterId, anew = false) {
  if (!store.events.has(clusterId)) store.events.set(clusterId, new Map());
  const { signal } = session;
  try {
    const { events } = await get(path("clusters", clusterId, "events"));
    const known = store.events.get(clusterId);
    if (!known) return; // the cluster was deleted meanwhile
    store.events.set(clusterId, new Map());
    keepEvents(clusterId, anew ? events : [...events, ...known.values()]);
  } catch (error) {
    if (signal.aborted || FINAL.includes(error.status)) return;
    setTimeout(() => !signal.aborted && store.events.has(clusterId) && openEvents(clusterId, anew), RETRY_MS);
  }
  changed();
}

// The same for some clusters, three at a time.
export async function openAll(ids, anew) {
  const left = [...ids];
  const next = async () => {
    while (left.length) await openEvents(left.shift(), anew);
  };
  await Promise.all([next(), next(), next()]);
}

let shared = null;
let leave = () => {};
// `action` is called when another tab with the same token has logged out.
export function onLeaving(action) {
  leave = action;
}

function follow(cursor) {
  shared = share(
    (event, data) => {
      if (event === "hello" || event === "reset") return listAnew();
      if (waiting) waiting.push([event, data]);
      else apply(event, data);
      changed();
    },
    (live, why) => {
      Object.assign(store, { live, why });
      if (live !== "live" && !store.loaded) listAnew(); // else the stream asks for it
      changed();
    },
    () => leave(),
    cursor,
  );
}

// Begin for the session's project.
export function open() {
  follow("");
}

// Go on with another token: what is known stays.
export function renew() {
  const cursor = shared?.cursor() ?? "";
  shared?.stop();
  follow(store.loaded ? cursor : "");
}

// Forget all; what is under way ends with the login. logout: the other tabs with this token close too.
export function close(logout = false) {
  if (logout) shared?.logout();
  shared?.stop();
  for (const kind of [...Object.keys(LISTS), "events"]) store[kind] = new Map();
  Object.assign(store, { gone: {}, told: "", loaded: false, problem: "", live: "waiting", why: "" });
  waiting = null;
  again = false;
  changed();
}

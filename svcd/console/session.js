// Who is logged in. A token lives in this tab only, and is sent in a header only.
import { now } from "./time.js";

const KEPT = "svcd";
// project: its id; name: of the project, if known. until: end of the token in milliseconds of the
// daemon's clock, if known. user, domain: as typed for a login with a password; userId: of its answer.
const NOBODY = { project: "", name: "", token: "", until: null, user: "", domain: "", userId: "" };

function kept() {
  try {
    return JSON.parse(sessionStorage.getItem(KEPT) ?? "{}");
  } catch {
    return {}; // the browser refuses storage: a reload asks again
  }
}

function keep(text) {
  try {
    if (text) sessionStorage.setItem(KEPT, text);
    else sessionStorage.removeItem(KEPT);
  } catch {
    // see above
  }
}

let ending = new AbortController();
// signal: aborted when this login ends. All that is under way belongs to one login; a renewed login is the same one.
// drafts: name of a form -> what was typed, without secrets.
const state = { auth: "none", passwords: false, ...NOBODY, ...kept(), signal: ending.signal, drafts: new Map() };

function end() {
  ending.abort();
  ending = new AbortController();
  Object.assign(state, { signal: ending.signal, drafts: new Map() });
}

export const session = state;

export function begin({ auth, project, password_login: passwords }) {
  Object.assign(state, { auth, passwords, home: project, project: state.project || project });
}

export const isOpen = () => Boolean(state.project && (state.auth === "none" || state.token));

// The name of a project stays known when a token without one opens the same project again.
export function login(given) {
  const name = given.name || (given.project === state.project ? state.name : "");
  Object.assign(state, NOBODY, given, { name });
  keep(JSON.stringify(Object.fromEntries(Object.keys(NOBODY).map((key) => [key, state[key]]))));
}

// The token has ended. The fields of the next login begin with what is known.
export function expire() {
  end();
  login({ ...pick(), token: "", until: null });
}

const pick = () => ({ project: state.project, name: state.name, user: state.user, domain: state.domain });

export function logout() {
  end();
  Object.assign(state, NOBODY);
  keep("");
}

// Milliseconds until the token ends; Infinity when that is not known.
export const remaining = () => (state.until ? state.until - now() : Infinity);

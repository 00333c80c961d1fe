// Requests to the API. Only this module uses fetch.
import { session } from "./session.js";
import { learn } from "./time.js";

export class ApiError extends Error {
  constructor(status, name, message) {
    super(message);
    Object.assign(this, { status, name });
  }
}

const DEADLINE_MS = 75_000; // of a request: the daemon gives up after 60 seconds
const NO_ANSWER = "svcd has not answered for 75 seconds: try again";
const LOST = "svcd may have done it all the same. Press again: it does it once.";
const SAFE = { credentials: "omit", cache: "no-store", redirect: "error" };

let refused = () => false;
// `action` is called when the API refuses the token. It promises whether there is a new one.
export function onRefusal(action) {
  refused = action;
}

// Whether there is a token in place of the refused one, at once or after a new login.
export const renewed = async (token) => (token !== session.token && session.token ? true : refused());

export const path = (...parts) => `/v1.1/${[session.project, ...parts].map(encodeURIComponent).join("/")}`;

export const hex = (bytes) => Array.from(new Uint8Array(bytes), (n) => n.toString(16).padStart(2, "0")).join("");

// A key under which a request acts once, however often it is sent.
export const newKey = () => hex(crypto.getRandomValues(new Uint8Array(16)));

// The key of the next try. The daemon has done nothing of what it refuses; after a fault or without an answer it may
// have done it, and the same key lets the next try find that out.
export const nextKey = (key, { status }) => (status >= 400 && status < 500 ? newKey() : key);

// Send a request; the response, whose status is not an error. A refused token is asked for anew, and the request sent
// again. The request ends with the login.
// token: another one than the session's; it is not asked for anew, and the end of the login does not matter.
// stream: the answer has no end, so no deadline, and a new token is not waited for.
export async function send(method, address, { body, key, signal, token, stream = false } = {}) {
  const { signal: login } = session;
  const sent = token ?? session.token;
  const deadline = new AbortController();
  if (!stream) setTimeout(() => deadline.abort(new ApiError(0, "NO_ANSWER", NO_ANSWER)), DEADLINE_MS);
  const until = AbortSignal.any([deadline.signal, signal, token === undefined && login].filter(Boolean));
  const headers = {};
  if (sent) headers["X-Auth-Token"] = sent;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (key) headers["Idempotency-Key"] = key;
  const text = body === undefined ? undefined : JSON.stringify(body);
  let response;
  try {
    response = await fetch(address, { method, headers, body: text, signal: until, ...SAFE });
  } catch {
    until.throwIfAborted();
    throw new ApiError(0, "UNREACHABLE", `the daemon does not answer: is it running?${key ? `\n${LOST}` : ""}`);
  }
  learn(response.headers.get("Date"));
  if (response.ok) return response;
  let answer = {};
  try {
    answer = (await response.json()) ?? {};
  } catch {
    until.throwIfAborted();
  }
  const { status } = response;
  if (status === 401 && token === undefined) {
    const isRenewed = renewed(sent);
    const again = !stream && (await isRenewed) && !login.aborted && !signal?.aborted;
    if (again) return send(method, address, { body, key, signal });
  }
  throw new ApiError(status, answer.error_name ?? "ERROR", answer.error_message ?? `the daemon answered ${status}`);
}

// The title of what was refused, or had no answer. text: of the error, or its lines.
export const refusalOf = (text) => (`${text}`.includes(LOST) ? "No answer" : "Not done");

// Send a request; the JSON of the answer.
export const call = async (method, address, options) => (await send(method, address, options)).json();

export const get = (address, signal) => call("GET", address, { signal });

// End a token that a password has got. A token that cannot be ended now ends by itself.
export const endToken = (token) => send("POST", "/console/logout", { token }).catch(() => {});

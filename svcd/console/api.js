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

let refused = () => false;
// `action` is called when the API refuses the token. It promises whether there is a new one.
export function onRefusal(action) {
  refused = action;
}

// Whether there is a token in place of the refused one, at once or after a new login.
export const renewed = async (token) => (token !== session.token && session.token ? true : refused());

export const path = (...parts) => `/v1.1/${encodeURIComponent(session.project)}/${parts.map(encodeURIComponent).join("/")}`;

// A key under which a request acts once, however often it is sent.
export const newKey = () => [...crypto.getRandomValues(new Uint8Array(16))].map((n) => n.toString(16).padStart(2, "0")).join("");

// Send a request; the response, whose status is not an error. A refused token is asked for anew, and the request sent again.
// The request ends with the login. token: another one than the session's; it is not asked for anew, and the end of the
// login does not matter. stream: the answer has no end, so no deadline, and a new token is not waited for.
export async function send(method, address, { body, key, signal, token, stream = false } = {}) {
  const { signal: login } = session;
  const sent = token ?? session.token;
  const deadline = new AbortController();
  if (!stream) setTimeout(() => deadline.abort(new ApiError(0, "NO_ANSWER", "svcd has not answered for 75 seconds: try again")), DEADLINE_MS);
  const until = AbortSignal.any([deadline.signal, signal, token === undefined && login].filter(Boolean));
  const headers = {};
  if (sent) headers["X-Auth-Token"] = sent;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (key) headers["Idempotency-Key"] = key;
  let response;
  try {
    response = await fetch(address, { method, headers, signal: until, body: body === undefined ? undefined : JSON.stringify(body), credentials: "omit", cache: "no-store", redirect: "error" });
  } catch {
    until.throwIfAborted();
    throw new ApiError(0, "UNREACHABLE", "the daemon does not answer: is it running?");
  }
  learn(response.headers.get("Date"));
  if (response.ok) return response;
  let answer = {};
  try {
    answer = (await response.json()) ?? {};
  } catch {
    until.throwIfAborted();
  }
  if (response.status === 401 && token === undefined) {
    const isRenewed = renewed(sent);
    if (!stream && (await isRenewed) && !login.aborted && !signal?.aborted) return send(method, address, { body, key, signal });
  }
  throw new ApiError(response.status, answer.error_name ?? "ERROR", answer.error_message ?? `the daemon answered ${response.status}`);
}

export async function get(address, signal) {
  return (await send("GET", address, { signal })).json();
}

// End a token that a password has got. A token that cannot be ended now ends by itself.
export const endToken = (token) => send("POST", "/console/logout", { token }).catch(() => {});

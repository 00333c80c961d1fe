// Reads `watch`, a stream of server-sent events. EventSource cannot send the token, so fetch does.
import { path, send } from "./api.js";

const SILENCE_MS = 45_000; // the daemon writes at least every 15 seconds
const SHORTEST_MS = 500;
const LONGEST_MS = 15_000;

// The events of a stream of text; a comment is the event "beat". A part of an event waits for its rest.
export async function* events(reader, silence) {
  const decoder = new TextDecoder();
  let rest = "";
  let event = { event: "message", data: [] };
  for (;;) {
    const { done, value } = await silence(reader.read());
    if (done) return;
    const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      if (line === "") {
        if (event.data.length || event.id) yield { ...event, data: event.data.join("\n") };
        event = { event: "message", data: [] };
      } else if (line.startsWith(":")) {
        yield { event: "beat", data: "" };
      } else {
        const [, name, text] = /^([^:]*):? ?(.*)/s.exec(line);
        if (name === "data") event.data.push(text);
        else event[name] = text;
      }
    }
  }
}

// Watches after `cursor` until `stop()`. take(event, data, id): each change, `hello`, `reset`; `beat` without data.
// tell(state, text): "live", "waiting" with the reason, "ended" when a new try would not help, "refused" with the token.
export function watch(take, tell, cursor = "") {
  let stopped = false;
  let attempts = 0;
  let abort = new AbortController();
  let wake = () => {};

  async function once() {
    abort = new AbortController();
    let timer;
    const silence = (read) => {
      clearTimeout(timer);
      timer = setTimeout(() => abort.abort(), SILENCE_MS);
      return read;
    };
    try {
      const address = path("watch") + (cursor ? `?since=${encodeURIComponent(cursor)}` : "");
      const response = await silence(send("GET", address, { signal: abort.signal, stream: true }));
      tell("live", "");
      for await (const { id, event, data } of events(response.body.getReader(), silence)) {
        attempts = 0;
        if (id) cursor = id;
        if (event === "bye") return JSON.parse(data).reason;
        if (event === "beat") take(event);
        else if (data) take(event, JSON.parse(data), id);
      }
      return "the daemon closed the connection";
    } finally {
      clearTimeout(timer);
      abort.abort();
    }
  }

  async function run() {
    while (!stopped) {
      let reason;
      try {
        reason = await once();
      } catch (error) {
        reason = error.name === "AbortError" ? "no answer for a while" : error.message;
        if (stopped) return undefined;
        if (error.status === 401) return tell("refused", reason);
        if ([403, 404].includes(error.status)) return tell("ended", reason);
        if (error.status === 400) cursor = ""; // no daemon knows it any more
      }
      if (stopped) return undefined;
      const delay = Math.min(LONGEST_MS, SHORTEST_MS * 2 ** attempts) * (0.75 + Math.random() / 2);
      attempts += 1;
      tell("waiting", reason);
      await new Promise((resolve) => {
        wake = resolve;
        setTimeout(resolve, delay);
      });
    }
    return undefined;
  }

  const online = () => wake();
  addEventListener("online", online);
  run();
  return () => {
    stopped = true;
    removeEventListener("online", online);
    abort.abort();
    wake();
  };
}

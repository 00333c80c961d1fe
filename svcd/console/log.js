// The log of a run: read from where the page stopped, followed while the run goes on. The daemon leaves out the lines
// that no program of the job has written, unless the user wants everything or the programs have written nothing.
import { useEffect, useMemo, useState } from "./hooks.js";
import { html } from "./html.js";
import { path, send } from "./api.js";
import { readLog } from "./commands.js";
import { LogLines } from "./log_lines.js";
import { firstError, GAP, isSilent, linesWith, longer, NO_LINES, patternOf } from "./log_text.js";
import { Check, Command, Search, Section } from "./parts.js";
import { filter, here } from "./route.js";
import { count, plain } from "./text.js";

const WAIT_S = 20;
const PAUSE_MS = 2000; // after an answer without text that came at once, and after a failure
const URL_MS = 60_000; // until the browser has surely begun to save a file
const READING = "Reading the log…";
const OTHERS = "Oozie, Hadoop, Pig, Spark and Java";
const NOTHING = { text: NO_LINES, leftOut: 0, offset: 0, isRead: false, complete: false, gap: false };

const pause = () => new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
const addressOf = (id, all, offset) => `${path("job-executions", id, "log")}?programs=${!all}&offset=${offset}`;

// Follow the log of `id` until it is complete. all: also the lines of no program. take(text, more): what is new.
// tell(text): why nothing comes, or "".
async function follow(id, all, signal, take, tell) {
  let offset = 0;
  for (;;) {
    const began = performance.now();
    try {
      const response = await send("GET", `${addressOf(id, all, offset)}&wait=${offset ? WAIT_S : 0}`, { signal });
      const text = await response.text();
      const header = (name) => response.headers.get(`X-Log-${name}`);
      const before = offset;
      offset = Number(header("Offset"));
      const complete = header("Complete") === "true";
      take(text, { offset, leftOut: Number(header("Left-Out")), complete, gap: header("Gap") === "true" });
      tell("");
      if (complete) return;
      if (offset === before && performance.now() - began < PAUSE_MS) await pause();
    } catch (error) {
      if (signal.aborted) return;
      tell(error.message);
      if ([401, 403, 404].includes(error.status)) return;
      await pause();
    }
  }
}

// Let the browser save all that svcd keeps of a log.
async function download(address, name) {
  const response = await send("GET", address);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await response.blob());
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), URL_MS);
}

function useLog(id, all, setFault) {
  const [log, set] = useState(NOTHING);
  useEffect(() => {
    const abort = new AbortController();
    set(NOTHING);
    const take = (text, { leftOut, ...more }) => set((before) => ({
      ...more,
      text: text ? longer(before.text, text) : before.text,
      leftOut: before.leftOut + leftOut,
      isRead: true,
    }));
    follow(id, all, abort.signal, take, setFault);
    return () => abort.abort();
  }, [id, all]);
  return log;
}

const press = (text, act, label) => html`
  <button type="button" class="small" aria-label=${label} onClick=${act}>${text}</button>`;

// The indexes of the lines that have the text to find, which of them is the present one, and the index of the marked
// line, -1 for none. wanted: the number of the line that the address has.
function useMarked(lines, first, wanted, pattern) {
  const at = useMemo(() => linesWith(lines, pattern), [lines, pattern]);
  const now = Math.max(0, at.findIndex((index) => first + index >= wanted));
  const target = at.length ? at[now] : wanted - first;
  return { at, now, marked: target in lines ? target : -1 };
}

// What is done with the lines that are shown. load: asks for all of them, and saves them.
function Tools({ lines, first, marked, reason, load }) {
  const [told, tell] = useState("");
  const say = (work, done) => work.then(() => tell(done), ({ message }) => tell(`Not done: ${message}`));
  const copy = (text) => say(navigator.clipboard.writeText(plain(text)), "Copied.");
  const showError = () => {
    const error = firstError(lines, reason);
    tell(error < 0 ? "No line looks like an error." : "");
    if (error >= 0) filter({ find: "", line: first + error });
  };
  const save = () => {
    tell(READING);
    say(load(), "");
  };
  return html`<div class="heading faint">
    ${press("First error", showError)}
    ${navigator.clipboard && html`
      ${press("Copy", () => copy(lines.join("\n")))}
      ${marked >= 0 && press("Copy line", () => copy(lines[marked]))}`}
    ${press("Download", save)}
    <span role="status">${plain(told)}</span>
  </div>`;
}

// file: the name of a download. reason: of a failure.
export function Log({ id, file, ended, query, reason = "" }) {
  const [fault, setFault] = useState("");
  const [engine, setEngine] = useState(false);
  const [following, setFollowing] = useState(!query.line && !query.find);
  const all = Boolean(query.all || engine);
  const log = useLog(id, all, setFault);
  const { lines: kept, first } = log.text;
  const lines = useMemo(() => (kept.at(-1) ? kept : kept.slice(0, -1)), [kept]);
  const wanted = Number(query.line) || 0;
  const pattern = useMemo(() => patternOf(query.find), [query.find]);
  const { at, now, marked } = useMarked(lines, first, wanted, pattern);
  useEffect(() => {
    if (log.complete && log.leftOut && isSilent(lines)) setEngine(true);
  }, [log.complete]);
  useEffect(() => {
    if (marked >= 0) setFollowing(false);
  }, [marked]);
  const go = (by) => at.length && filter({ line: first + at[(now + by + at.length) % at.length] });
  const side = html`
    <${Search} class="push" text="Find in the log" of="find" query=${query}
      onKeyDown=${(e) => e.key === "Enter" && go(e.shiftKey ? -1 : 1)} />
    ${pattern && html`<span class="amount" role="status">${at.length && now + 1} of ${at.length}</span>
      ${press("↑", () => go(-1), "Previous match")}${press("↓", () => go(1), "Next match")}`}
    <${Check} text="Everything" on=${Boolean(query.all)} change=${(on) => filter({ all: on && "1", line: "" })} />
    <${Check} text="Follow" on=${following} change=${setFollowing} />
    <${Check} text="Wrap" on=${!query.long} change=${(on) => filter({ long: on ? "" : "1" })} />`;
  const gap = first + (log.gap ? lines.findIndex((line) => line.startsWith(GAP)) : -1);
  const notes = [
    gap >= first && html`A part of the log is missing: see <a href=${here({ line: gap })}>line ${gap}</a>.`,
    engine && !query.all && `The programs have written nothing: these are the lines of ${OTHERS}.`,
    first > 1 && `This page no longer keeps lines 1 to ${first - 1}.`,
    log.isRead && wanted >= first + lines.length && `There is no line ${wanted}.`,
    !lines.length && !fault && (log.isRead ? `Nothing is written${ended ? "" : " so far"}.` : READING),
    log.leftOut > 0 && `Left out: ${count(log.leftOut, "line")} of ${OTHERS}.`,
  ];
  return html`<${Section} id="log" title="Log" side=${side}>
    ${fault && html`<p class="notice" role="status">The log cannot be read now: <bdi>${plain(fault)}</bdi></p>`}
    ${lines.length > 0 && html`
      <${LogLines} ...${{ lines, first, marked, pattern, following, wrap: !query.long, shown: query.find }}
        setFollowing=${(isAtEnd) => setFollowing((before) => isAtEnd && (before || marked < 0))} />
      <${Tools} ...${{ lines, first, marked, reason }} load=${() => download(addressOf(id, all, 0), file)} />`}
    ${notes.map((note) => note && html`<p class="faint">${note}</p>`)}
    <${Command} text=${readLog(id, { ended, all })} />
  <//>`;
}

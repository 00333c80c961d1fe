// The log of a run: read from where the page stopped, followed while the run goes on. The daemon leaves out the lines
// that no program of the job has written, unless the user wants everything.
import { useEffect, useMemo, useRef, useState } from "./hooks.js";
import { html } from "./html.js";
import { path, send } from "./api.js";
import { Search, Section } from "./parts.js";
import { filter } from "./route.js";
import { count, plain, withoutColours } from "./text.js";

const WAIT_S = 20;
const PAUSE_MS = 2000; // after an answer without text that came at once, and after a failure
const LINES = 5000; // the newest ones are drawn
const LONGEST = 2000; // characters of a line that are drawn
const KEPT = 4_000_000; // characters
const NOTHING = { text: "", leftOut: 0, offset: 0 };

const pause = () => new Promise((resolve) => setTimeout(resolve, PAUSE_MS));

// Follow the log of `id` until it is complete. all: also the lines of no program. take(text, leftOut, offset): what is
// new, the number of lines that were left out of it, and its end. tell(text): why nothing comes, or "".
async function follow(id, all, signal, take, tell) {
  let offset = 0;
  for (;;) {
    const began = performance.now();
    try {
      const query = `offset=${offset}&programs=${!all}&wait=${offset ? WAIT_S : 0}`;
      const response = await send("GET", `${path("job-executions", id, "log")}?${query}`, { signal });
      const text = await response.text();
      const header = (name) => Number(response.headers.get(name));
      const before = offset;
      offset = header("X-Log-Offset");
      take(text, header("X-Log-Left-Out"), offset);
      tell("");
      if (response.headers.get("X-Log-Complete") === "true") return;
      if (offset === before && performance.now() - began < PAUSE_MS) await pause();
    } catch (error) {
      if (signal.aborted) return;
      tell(error.message);
      if ([401, 403, 404].includes(error.status)) return;
      await pause();
    }
  }
}

function drawLine(line) {
  const rest = line.length > LONGEST ? ` … (${line.length} characters)` : "";
  return `${plain(line.slice(0, LONGEST))}${rest}\n`;
}

// The lines that have the text `wanted`: how many of all, and the last ones as they are drawn.
function search(text, wanted) {
  const lines = withoutColours(text).replace(/\n$/, "").split("\n");
  const found = wanted ? lines.filter((each) => each.toLowerCase().includes(wanted)) : lines;
  return { all: lines.length, found: found.length, drawn: found.slice(-LINES).map(drawLine).join("") };
}

export function Log({ id, ended, query }) {
  const [{ text, leftOut, offset }, set] = useState(NOTHING);
  const [fault, setFault] = useState("");
  const [following, setFollowing] = useState(true);
  const box = useRef(null);
  useEffect(() => {
    const abort = new AbortController();
    set(NOTHING);
    const take = (part, without, end) =>
      set((before) => ({ text: (before.text + part).slice(-KEPT), leftOut: before.leftOut + without, offset: end }));
    follow(id, Boolean(query.all), abort.signal, take, setFault);
    return () => abort.abort();
  }, [id, query.all]);
  useEffect(() => {
    if (following && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [text, following]);
  const wanted = (query.find ?? "").toLowerCase();
  const { all, found, drawn } = useMemo(() => search(text, wanted), [text, wanted]);
  const atEnd = () => {
    const { scrollTop, scrollHeight, clientHeight } = box.current;
    setFollowing(scrollHeight - scrollTop - clientHeight < 40);
  };
  const side = html`
    <${Search} class="push" text="Find in the log" of="find" query=${query} />
    <label class="check">
      <input type="checkbox" checked=${Boolean(query.all)}
        onChange=${(e) => filter({ all: e.target.checked ? "1" : "" })} /> Everything
    </label>
    <label class="check">
      <input type="checkbox" checked=${following} onChange=${(e) => setFollowing(e.target.checked)} /> Follow
    </label>`;
  const lines = html`
    ${wanted && html`<p class="faint">${found} of ${all} lines</p>`}
    ${found > LINES && html`<p class="faint">The last ${LINES} of ${found} lines.</p>`}
    <pre class="log" ref=${box} tabindex="0" aria-label="Log" dir="ltr" onScroll=${atEnd}>${drawn}</pre>`;
  const soFar = ended ? "" : " so far";
  const none = offset ? `The programs have written nothing${soFar}.` : `The log is empty${soFar}.`;
  return html`<${Section} id="log" title="Log" side=${side}>
    ${fault && html`<p class="notice" role="status">The log cannot be read now: <bdi>${plain(fault)}</bdi></p>`}
    ${text ? lines : !fault && html`<p class="faint">${none}</p>`}
    ${leftOut > 0 && html`
      <p class="faint">${count(leftOut, "line")} of Oozie, Hadoop, Pig, Spark and Java ${leftOut === 1 ? "is" : "are"} left out.</p>`}
  <//>`;
}

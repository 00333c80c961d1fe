// The parts of all views: states, links, buttons, questions, commands.
import { useEffect, useRef, useState } from "./hooks.js";
import { html } from "./html.js";
import { newKey } from "./api.js";
import { pageAddress, plain } from "./text.js";
import { ago, full, moment } from "./time.js";

const TONES = {
  Active: "good", SUCCEEDED: "good", ACTIVE: "good", done: "good",
  Error: "bad", FAILED: "bad", ERROR: "bad", failed: "bad", DELETED: "bad", SHUTOFF: "bad",
  KILLED: "off", Deleting: "off", Pending: "wait", SUSPENDED: "wait", retry: "wait", waiting: "wait", unwell: "wait", accepted: "off", started: "off",
};
export const tone = (word) => TONES[word] ?? "busy";

// A state: a sign with a shape and a word, so that colour is not needed to read it.
export const State = ({ word, of }) => html`<span class="state ${tone(of ?? word)}"><i aria-hidden="true"></i>${plain(word)}</span>`;

// A name of others: its direction of writing does not change what stands beside it.
export const Name = ({ children }) => html`<bdi class="name">${plain(children)}</bdi>`;

export const Time = ({ at }) => {
  const ms = typeof at === "number" ? at : moment(at);
  return ms === null ? html`<span class="faint">–</span>` : html`<time datetime=${new Date(ms).toISOString()} title=${full(ms)}>${ago(ms)}</time>`;
};

// A link to another page, if its address is one; else its text.
export function Outside({ address }) {
  const href = pageAddress(address);
  const text = html`<bdi>${plain(address)}</bdi>`;
  return href ? html`<a href=${href} target="_blank" rel="noopener noreferrer">${text}</a>` : html`<code>${text}</code>`;
}

// The command that does the same as the page.
export function Command({ text }) {
  const [copied, set] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    set(true);
    setTimeout(() => set(false), 1500);
  };
  return html`<div class="command"><code tabindex="0">${text}</code>
    ${navigator.clipboard && html`<button type="button" class="small" onClick=${copy} aria-label="Copy the command">${copied ? "Copied" : "Copy"}</button>`}</div>`;
}

// A table that scrolls by itself. columns: title -> class of its cells; "unseen" for a title that is only read aloud.
export const Table = ({ columns, children }) => html`<div class="table"><table>
  <thead><tr>${Object.entries(columns).map(([title, side]) => html`<th key=${title} scope="col" class=${side !== "unseen" && side}>${side === "unseen" ? html`<span class="unseen">${title}</span>` : title}</th>`)}</tr></thead>
  <tbody>${children}</tbody></table></div>`;

// Choices of a select, [value, text] each.
export const options = (rows) => rows.map(([value, text]) => html`<option key=${value} value=${value}>${plain(text)}</option>`);

export const Filter = ({ label, value = "", rows, choose, ...more }) => html`<label ...${more}>${label} <select value=${value} onChange=${choose}>${options(rows)}</select></label>`;

export const Empty = ({ title, children }) => html`<div class="empty"><p><strong>${title}</strong></p>${children}</div>`;

export const Problem = ({ title, children }) => html`<div class="problem" role="alert"><strong>${title}</strong><div>${children}</div></div>`;

// A text that may be long: its beginning, and a way to see all of it.
export function Cut({ text, most = 2000 }) {
  const [all, show] = useState(false);
  const whole = String(text ?? "");
  if (all || whole.length <= most) return plain(whole);
  return html`${plain(whole.slice(0, most))}… <button type="button" class="small" onClick=${() => show(true)}>Show all ${whole.length} characters</button>`;
}

// A text of several lines.
export const Lines = ({ text }) => html`<div class="lines" dir="auto"><${Cut} text=${text} /></div>`;

// Draw again every `ms`, for times that pass. Nothing is asked of the daemon.
export function useTick(ms) {
  const [, set] = useState(0);
  useEffect(() => {
    if (!ms) return undefined;
    const timer = setInterval(() => set((n) => n + 1), ms);
    return () => clearInterval(timer);
  }, [ms]);
}

export function useTitle(title) {
  useEffect(() => {
    document.title = title ? `${plain(title)} · svcd` : "svcd";
  }, [title]);
}

// A question before an action. confirm: the name that the user types, "" for none.
// act(key): sends the request; a key belongs to one question, so that two presses act once.
export function Question({ title, verb, danger, confirm = "", command, act, close, ready = true, children }) {
  const dialog = useRef(null);
  const key = useRef(newKey());
  const [typed, type] = useState("");
  const [busy, setBusy] = useState(false);
  const [fault, setFault] = useState("");
  useEffect(() => {
    const before = document.activeElement;
    dialog.current.showModal();
    return () => before.focus(); // a dialog that is removed gives the focus to no element
  }, []);
  const submit = async (event) => {
    event.preventDefault();
    if (busy) return;
    setBusy(true);
    setFault("");
    try {
      await act(key.current);
      close();
    } catch (error) {
      setFault(error.message);
      if (error.status) key.current = newKey(); // the daemon has answered: a new try is a new request
      setBusy(false);
    }
  };
  const asked = confirm && typed !== confirm;
  return html`<dialog ref=${dialog} onClose=${close} aria-labelledby="question">
    <form onSubmit=${submit}>
      <h2 id="question">${title}</h2>
      ${children}
      ${confirm && html`<label class="field"><span>Type <bdi>${plain(confirm)}</bdi> to confirm</span>
        <input value=${typed} onInput=${(e) => type(e.target.value)} autocomplete="off" spellcheck=${false} autofocus /></label>`}
      ${fault && html`<${Problem} title="Not done"><${Lines} text=${fault} /><//>`}
      <p class="faint">The same as a command:</p>
      <${Command} text=${command} />
      <div class="buttons">
        <button type="button" onClick=${close}>Keep things as they are</button>
        <button type="submit" class=${danger ? "danger" : "primary"} disabled=${Boolean(asked) || busy || !ready}>${busy ? "Sending…" : verb}</button>
      </div>
    </form>
  </dialog>`;
}

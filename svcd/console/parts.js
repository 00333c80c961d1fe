// The parts of all views: states, links, buttons, questions, commands.
import { useEffect, useRef, useState } from "./hooks.js";
import { html } from "./html.js";
import { shortId } from "./records.js";
import { current, filter, to } from "./route.js";
import { store } from "./store.js";
import { pageAddress, plain } from "./text.js";
import { ago, full, left, moment, now } from "./time.js";

const DAY_MS = 86_400_000;

const TONES = {
  Active: "good", Succeeded: "good", ACTIVE: "good", done: "good",
  Error: "bad", Failed: "bad", Killed: "bad", ERROR: "bad", failed: "bad", DELETED: "bad", SHUTOFF: "bad",
  Pending: "wait", Suspended: "wait", retry: "wait", waiting: "wait", unwell: "wait",
  Cancelled: "off", Deleting: "off", accepted: "off", started: "off",
};
export const tone = (word) => TONES[word] ?? "busy";

// A state: a sign with a shape and a word, so that colour is not needed to read it.
export const State = ({ word, of }) =>
  html`<span class="state ${tone(of ?? word)}"><i aria-hidden="true"></i>${plain(word)}</span>`;

// A name of others: its direction of writing does not change what stands beside it.
export const Name = ({ children }) => html`<bdi class="name">${plain(children)}</bdi>`;

// A run's short number: the beginning of its id, which commands and filters accept.
export const Id = ({ run }) => html`<code class="faint">${plain(shortId(run))}</code>`;

// The link to the page of a record; one without a name is gone.
export const Link = ({ view, id, name }) => (name === undefined
  ? html`<span class="faint">a deleted cluster</span>`
  : html`<a href=${to([view, id])}><${Name}>${name}<//></a>`);

// draw: `left` for a time to come.
export const Time = ({ at, draw = ago }) => {
  const ms = moment(at);
  if (ms === null) return html`<span class="faint">–</span>`;
  return html`<time datetime=${new Date(ms).toISOString()} title=${full(ms)}>${draw(ms)}</time>`;
};

// The deletion of a cluster by svcd itself, when it comes within a day.
export const Ending = ({ cluster: { status: word, delete_at: at } }) =>
  at && word !== "Deleting" && moment(at) < now() + DAY_MS && html`
    <span class="faint">deleted <${Time} at=${at} draw=${left} /></span>`;

// A link to another page, if its address is one; else its text.
export function Outside({ address, text = address }) {
  const href = pageAddress(address);
  const shown = html`<bdi>${plain(text)}</bdi>`;
  if (!href) return html`<code>${shown}</code>`;
  return html`<a href=${href} target="_blank" rel="noopener noreferrer">${shown}</a>`;
}

// The command that does the same as the page, behind a button. open: in view, for the page cannot do the same.
export function Command({ text, open }) {
  const [done, set] = useState({}); // text: which was copied; said: how
  const said = done.text === text ? done.said : "";
  const code = useRef(null);
  const copy = async () => {
    set({}); // so that a second time is told, too
    try {
      await navigator.clipboard.writeText(text);
      set({ text, said: "Copied" });
    } catch {
      getSelection().selectAllChildren(code.current); // the browser refuses, or the page is not encrypted
      set({ text, said: "Selected" });
    }
  };
  const command = html`<div class="command">
    <code tabindex="0" ref=${code}>${text}</code>
    <button type="button" class="small" onClick=${copy}>${said || "Copy"}<span class="unseen"> the command</span></button>
    <span class="unseen" role="status">${said}</span>
  </div>`;
  if (open) return command;
  return html`<details class="cli"><summary>CLI<span class="unseen"> command that does the same</span></summary>${command}</details>`;
}

function Column([title, side]) {
  if (side === "unseen") return html`<th key=${title} scope="col"><span class="unseen">${title}</span></th>`;
  return html`<th key=${title} scope="col" class=${side}>${title}</th>`;
}

// The head of a page of one record: the way to the list, the name, facts, and buttons.
export const Title = ({ all, name, facts, children }) => html`<header class="title">
  <div>
    <p class="faint crumbs"><a href=${to([all.toLowerCase()])}>${all}</a></p>
    <h1><${Name}>${name}<//></h1>
    <p class="facts">${facts}</p>
  </div>
  <div class="buttons">${children}</div>
</header>`;

// A part of a page with a heading. number: of what is in it; side: what stands beside the heading, undefined for none.
export function Section({ id, title, number, side, children, ...more }) {
  const heading = html`
    <h2 id=${id}>${title}${number !== undefined && html` <span class="number">${number}</span>`}</h2>`;
  return html`<section ...${more} aria-labelledby=${id}>
    ${side === undefined ? heading : html`<div class="heading">${heading}${side}</div>`}
    ${children}
  </section>`;
}

// A click on a row opens what its link does; with Ctrl or Cmd, or the middle button, in a new tab. One that ends the
// selection of a text does not, and keys have the link itself.
function openRow(event) {
  const link = event.target.closest("tr")?.querySelector("th a");
  const { type, button, ctrlKey, metaKey, target } = event;
  if (!link || target.closest("a, button") || button > 1 || !getSelection().isCollapsed) return;
  if (type === "mousedown") {
    if (button) event.preventDefault(); // else the middle button scrolls
  } else if (button || ctrlKey || metaKey) window.open(link.href);
  else link.click();
}

// A table that scrolls by itself. columns: title -> class of its cells; "unseen" for a title that is only read aloud.
export const Table = ({ columns, children }) => html`
  <div class="table">
    <table>
      <thead><tr>${Object.entries(columns).map(Column)}</tr></thead>
      <tbody onMouseDown=${openRow} onClick=${openRow} onAuxClick=${openRow}>${children}</tbody>
    </table>
  </div>`;

// Choices of a select, [value, text] each.
export const choices = (rows) =>
  rows.map(([value, text]) => html`<option key=${value} value=${value}>${plain(text)}</option>`);

// A field whose text is the filter `of` of the view. say: what it finds, for those who do not see the field.
export const Search = ({ text, say = text, of, query, ...more }) => html`
  <input ...${more} type="search" placeholder=${text} aria-label=${say} value=${query[of] ?? ""}
    onInput=${(e) => filter({ [of]: e.target.value })} />`;

// A choice that is the filter `of` of the view.
export const Filter = ({ label, of, query, rows, ...more }) => html`
  <label ...${more}>${label} <select value=${query[of] ?? ""} onChange=${(e) => filter({ [of]: e.target.value }, true)}>
    ${choices(rows)}
  </select></label>`;

export const Filters = ({ children }) => html`
  <form class="filters" onSubmit=${(e) => e.preventDefault()}>${children}</form>`;

export const Check = ({ text, on, change }) => html`
  <label class="check"><input type="checkbox" checked=${on} onChange=${(e) => change(e.target.checked)} /> ${text}</label>`;

// The rows that pass the filters. number: of them; most: of those that are drawn.
export const Found = ({ one, number, most, children }) => (number
  ? html`${children}${number > most && html`<p class="faint">The newest ${most} of ${number}: a filter finds others.</p>`}`
  : html`<${Empty} title=${`No ${one} fits the filters`}>
      <p><a href=${to(current().parts, { show: current().query.show })}>Show all</a></p>
    <//>`);

// Values with their names, [name, drawing] each; those without a drawing are left out.
export const Values = ({ rows }) => html`
  <dl class="values">${rows.map(([name, drawn], at) => drawn && html`
    <div key=${at}><dt>${name}</dt><dd>${drawn}</dd></div>`)}
  </dl>`;

export const Empty = ({ title, children }) => html`
  <div class="empty"><p><strong>${title}</strong></p>${children}</div>`;

// A page without its record; from one that is deleted while it is shown it leads to the list. what: "cluster", "run" or
// "job".
export function Missing({ what, id }) {
  const { gone } = store;
  const isGone = gone.id === id;
  useEffect(() => {
    if (!isGone) return;
    store.told = `The ${what} ${gone.name ?? ""} is deleted.`;
    location.replace(to([`${what}s`]));
  }, [isGone]);
  return !isGone && html`
    <${Empty} title=${`This ${what} does not exist`}>
      <p>It may have been deleted. <a href=${to([`${what}s`])}>See all ${what}s</a></p>
    <//>`;
}

export const Problem = ({ title, children }) => html`
  <div class="problem" role="alert"><strong>${title}</strong><div>${children}</div></div>`;

// A text that may be long: its beginning, and a way to see all of it.
export function Cut({ text, most = 2000 }) {
  const [all, show] = useState(false);
  const whole = String(text ?? "");
  if (all || whole.length <= most) return plain(whole);
  const more = html`
    <button type="button" class="small" onClick=${() => show(true)}>Show all ${whole.length} characters</button>`;
  return html`${plain(whole.slice(0, most))}… ${more}`;
}

// A text of several lines.
export const Lines = ({ text }) => html`<div class="lines" dir="auto"><${Cut} text=${text} /></div>`;

// Draw again from time to time, for times that pass. Nothing is asked of the daemon.
export function useTick(often) {
  const [, set] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => set((n) => n + 1), often ? 1000 : 30_000);
    return () => clearInterval(timer);
  }, [often]);
}

export function useTitle(title) {
  useEffect(() => {
    document.title = title ? `${plain(title)} · svcd` : "svcd";
  }, [title]);
}

// The head of a page that is not of one record.
export function Head({ title, number, children, ...more }) {
  useTitle(title);
  return html`<header class="title">
    <h1 ...${more}>${title}${number !== undefined && html` <span class="number">${number}</span>`}</h1>
    ${children}
  </header>`;
}

// A dialog that is open while it is drawn. Then the focus goes back, or to the view that it has led to.
export function Dialog({ children, ...more }) {
  const dialog = useRef(null);
  useEffect(() => {
    const before = document.activeElement;
    const { hash } = location;
    const box = dialog.current;
    box.showModal();
    return () => {
      if (location.hash !== hash) document.getElementById("main").focus();
      else if (box.open) before.focus(); // the browser has done it when Esc closed the dialog
    };
  }, []);
  return html`<dialog ref=${dialog} ...${more}>${children}</dialog>`;
}

// Find: a dialog with the views, clusters, jobs and runs that a text names.
import { useState } from "./hooks.js";
import { html } from "./html.js";
import { Dialog, Name, State, Time } from "./parts.js";
import { jobName, matches, newestFirst, outcome } from "./records.js";
import { to, VIEWS } from "./route.js";
import { store } from "./store.js";

const MOST = 12; // rows
const PLACES = [
  ["New cluster", "#/launch"],
  ["Run a program", "#/run"],
  ["New job", "#/jobs?new=1"],
  ["New binaries", "#/jobs?show=binaries&new=1"],
  ...VIEWS.map(([view, name]) => [name, `#/${view}`]),
];

// The rows of one kind, whole names first, then the newest first. list: of the store; more(row): its name and a word.
function ofKind(text, kind, list, more) {
  const found = newestFirst([...list.values()].filter((row) => matches(text, more(row)[0], row.id)));
  const isWhole = (row) => more(row)[0] === text;
  return [...found.filter(isWhole), ...found.filter((row) => !isWhole(row))].slice(0, MOST).map((row) => {
    const [name, word] = more(row);
    return { kind, name, word, at: row.created_at, href: to([`${kind}s`, row.id]) };
  });
}

// What a text finds: pages, clusters, jobs and runs; many of one kind do not crowd out the others.
export function find(text, { cluster: clusters, job: jobs, job_execution: runs }) {
  const given = text.trim();
  const kinds = [
    PLACES.filter(([name]) => matches(given, name, "")).map(([name, href]) => ({ kind: "page", name, href })),
    ofKind(given, "cluster", clusters, ({ name, status }) => [name, status]),
    ofKind(given, "job", jobs, ({ name }) => [name]),
    ofKind(given, "run", runs, (run) => [jobName(jobs, run), outcome(run)]),
  ];
  const ranked = kinds.flatMap((rows, kind) => rows.map((row, rank) => ({ rank, kind, row })));
  const shown = ranked.sort((a, b) => a.rank - b.rank).slice(0, MOST);
  return shown.sort((a, b) => a.kind - b.kind).map(({ row }) => row);
}

const Row = ({ row: { kind, name, word, at }, id, on, go }) => html`
  <li role="option" id=${id} aria-selected=${on} onClick=${go}>
    <span class="faint">${kind}</span><${Name}>${name}<//>
    <span class="push">${word && html`<${State} word=${word} />`}</span>
    <span class="faint wide">${at && html`<${Time} at=${at} />`}</span>
  </li>`;

// The rows are those of the moment of typing: none moves under a press of Enter.
export function Find({ close, more }) {
  const [{ rows, at }, set] = useState(() => ({ rows: find("", store), at: 0 }));
  const go = ({ href }) => (event) => {
    if (event.ctrlKey || event.metaKey) return window.open(href);
    location.hash = href;
    close();
  };
  const press = (event) => {
    const step = { ArrowDown: 1, ArrowUp: rows.length - 1 }[event.key];
    if (!rows.length || (!step && event.key !== "Enter")) return;
    event.preventDefault();
    if (step) set({ rows, at: (at + step) % rows.length });
    else go(rows[at])(event);
  };
  return html`<${Dialog} class="find" closedby="any" onClose=${close} aria-label="Find">
    <input role="combobox" autofocus autocomplete="off" spellcheck=${false} aria-expanded="true" aria-autocomplete="list"
      aria-controls="found" aria-activedescendant=${rows.length ? `found-${at}` : undefined}
      aria-label="Find a cluster, a job, a run or a view" placeholder="Name, or the beginning of an id"
      onInput=${(e) => set({ rows: find(e.target.value, store), at: 0 })} onKeyDown=${press} />
    <ul role="listbox" id="found" aria-label="Found">${rows.map((row, number) => html`
      <${Row} key=${row.href + row.name} row=${row} id=${`found-${number}`} on=${number === at} go=${go(row)} />`)}
    </ul>
    <p class="faint"><span role="status">${rows.length ? `${rows.length} shown, the newest first` : "Nothing has this name or id"}</span>
      <button type="button" class="small" onClick=${more}>Keys</button></p>
  <//>`;
}

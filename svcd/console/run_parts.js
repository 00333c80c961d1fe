// Parts of the form that runs a program.
import { useEffect, useState } from "./hooks.js";
import { html } from "./html.js";
import { get, path } from "./api.js";
import { Long, ROWS } from "./job_parts.js";
import { choices, Command, Cut, Name, State, Values } from "./parts.js";
import { newestFirst } from "./records.js";
import { store } from "./store.js";
import { count, plain, withLine } from "./text.js";
import { Drop } from "./uploads.js";

export const CONFIGS = "job_configs.configs";

export function Accepted({ plan: { staged, input, output, workflow, job_credentials: logins } }) {
  const data = (each) => each && html`<${Long} text=${each.url} />`;
  const rows = [
    ["Copied to the cluster", html`<${Name}>${staged.map((each) => each.name).join(", ") || "nothing"}<//>`],
    ["Input", data(input)],
    ["Output", data(output)],
    ["Keystone", logins > 0 && `${count(logins, "application credential")} for the job`],
  ];
  return html`<section class="plan" role="status">
    <h3>svcd would accept this</h3>
    <${Values} rows=${rows} />
    <details>
      <summary>Definition for the workflow engine</summary>
      <pre class="log" tabindex="0"><${Cut} text=${workflow} most=${20_000} /></pre>
    </details>
  </section>`;
}

// Options that jobs of this type know; a button adds one.
export function Hints({ type, form }) {
  const [hints, set] = useState([]);
  useEffect(() => {
    set([]);
    if (type) get(path("jobs", "config-hints", type)).then((answer) => set(answer.job_config.configs), () => {}); // advice
  }, [type]);
  const added = ({ name, value }) => (before) => ({ [CONFIGS]: withLine(before[CONFIGS], `${name}=${value}`) });
  return hints.length > 0 && html`<details>
    <summary>${count(hints.length, "known option")}</summary>
    <ul class="plain">${hints.map((each) => html`
      <li key=${each.name}>
        <button type="button" class="small" onClick=${() => form.change(added(each))}>${plain(each.name)}</button>${" "}
        <span class="faint">${plain(each.description)}</span>
      </li>`)}
    </ul>
  </details>`;
}

const UPLOAD =
  "The page cannot reach the object store. This command uploads a file or a folder with your login, and runs the program:";

// The data sources that a place may name, and the command for a file of the computer.
export const Places = ({ command }) => html`
  <datalist id="places">${newestFirst(store.data_source.values()).slice(0, ROWS).map(({ id, name, url }) => html`
    <option key=${id} value=${plain(name)}>${plain(url)}</option>`)}
  </datalist>
  <details>
    <summary>Use a file of your computer</summary>
    <p>${UPLOAD}</p>
    <${Command} open text=${command} />
  </details>`;

// A file that is dropped, or what svcd has: the newest jobs and binaries. choose(id, isScript): see `typeOf`.
export function Program({ value, choose, busy }) {
  const done = async (made, _, file) => choose(made.id, (await file.slice(0, 2).text()) === "#!");
  const rows = ["job", "job_binary"].flatMap((kind) => newestFirst(store[kind].values()).slice(0, ROWS));
  const known = rows.map(({ id, name, type }) => [id, type ? `${name}: a ${type} job` : name]);
  return html`
    <${Drop} one done=${done} taken=${() => choose("")} busy=${busy} />
    ${known.length > 0 && html`<label class="field">
      <span>or one that svcd has</span>
      <select value=${value} onChange=${(e) => choose(e.target.value)}>${choices([["", "choose…"], ...known])}</select>
    </label>`}`;
}

export const Steps = ({ steps }) => html`<ol class="plain" aria-live="polite">${steps.map(([title, state]) => html`
  <li key=${title}><${State} word=${state} /> ${plain(title)}</li>`)}
</ol>`;

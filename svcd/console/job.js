// One job: its binaries and newest runs, and the form that runs it.
import { useState } from "./hooks.js";
import { html } from "./html.js";
import { KINDS, Long, Remove } from "./job_parts.js";
import { Lines, Missing, Name, Section, Time, Title, useTick, useTitle, Values } from "./parts.js";
import { to } from "./route.js";
import { RunForm } from "./run_form.js";
import { NewestRuns } from "./run_table.js";
import { store, useStore } from "./store.js";
import { plain } from "./text.js";

const Binary = ({ name, url }) => html`
  <p><${Name}>${name}<//> <span class="faint"><${Long} text=${url} /></span></p>`;

function listed(rows) {
  if (!rows.length) return html`<p class="faint">none</p>`;
  return rows.map((each) => html`<${Binary} key=${each.id} ...${each} />`);
}

export function Job({ id, query }) {
  const { loaded } = useStore();
  const [question, ask] = useState(false);
  const job = store.job.get(id);
  useTick();
  useTitle(job?.name ?? "Job");
  if (!job) return loaded && html`<${Missing} what="job" id=${id} />`;
  const facts = html`<span>${plain(job.type)}</span><span>created <${Time} at=${job.created_at} /></span>`;
  const form = to(["jobs", id], { run: query.run ? "" : "1" });
  return html`
    <${Title} all="Jobs" name=${job.name} facts=${facts}>
      <a class="button" href=${form}>${query.run ? "Close the form" : "Run it"}</a>
      <a class="button" href=${to(["jobs"], { new: "1", like: id })}>New from this</a>
      <button type="button" class="danger" onClick=${() => ask(true)}>Delete</button>
    <//>
    <${Lines} text=${job.description} />
    ${query.run && html`<${RunForm} key=${query.like} job=${job} like=${store.job_execution.get(query.like)} />`}
    <${Section} id="binaries" title="Binaries">
      <${Values} rows=${[["Main", listed(job.mains)], ["Libraries", listed(job.libs)]]} />
    <//>
    <${NewestRuns} of="job_id" id=${id} query=${{ q: job.name }} />
    ${question && html`<${Remove} of=${KINDS.jobs} row=${job} close=${() => ask(false)} />`}`;
}

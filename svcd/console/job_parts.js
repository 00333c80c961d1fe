// What the views of jobs share: their kinds of records, long texts, the question before a deletion.
import { html } from "./html.js";
import { call, path, send } from "./api.js";
import { remove } from "./commands.js";
import { Cut, State, Time } from "./parts.js";
import { Question } from "./question.js";
import { outcome } from "./records.js";
import { to } from "./route.js";
import { keep } from "./store.js";
import { plain } from "./text.js";

export const ROWS = 200; // of a list and of a choice

// Ending of a program's name -> its type, as `svcd run` decides.
export const ENDINGS = { pig: "Pig", py: "Spark", sql: "Spark", sh: "Shell", bash: "Shell" };

export const Long = ({ text }) => html`<code><${Cut} text=${text} most=${90} /></code>`;

// The newest run of a job, as a link.
function Last({ run }) {
  if (!run) return html`<span class="faint">never</span>`;
  return html`
    <a href=${to(["runs", run.id])}><${State} word=${outcome(run)} /></a>${" "}
    <span class="faint wide"><${Time} at=${run.created_at} /></span>`;
}

function Binaries({ mains, libs }) {
  const names = [...mains, ...libs].map((each) => each.name).join(", ");
  return html`<${Cut} text=${names} most=${90} />`;
}
const type = ["Type", (row) => plain(row.type)];
const address = ["URL", (row) => html`<${Long} text=${row.url} />`];
const when = ["Created", (row) => html`<${Time} at=${row.created_at} />`];

// word: of the command; kind: of the store; list: of the API; columns: title and drawing each, the last two not on a
// phone.
export const KINDS = {
  jobs: {
    one: "job",
    title: "Jobs",
    kind: "job",
    list: "jobs",
    gone: "Its binaries stay. svcd refuses while it has runs.",
    columns: [type, ["Last run", (row, last) => html`<${Last} run=${last.get(row.id)} />`], ["Binaries", Binaries], when],
  },
  sources: {
    one: "data source",
    word: "source",
    title: "Data sources",
    kind: "data_source",
    list: "data-sources",
    gone: "The data itself stays where it is.",
    columns: [type, address, when],
  },
  binaries: {
    one: "binary",
    word: "binary",
    title: "Binaries",
    kind: "job_binary",
    list: "job-binaries",
    gone: "Its data goes too, if svcd keeps it for no other binary.",
    columns: [address, when],
  },
};

// of: one of KINDS.
export function Remove({ of, row, close }) {
  const act = async (key) => {
    await send("DELETE", path(of.list, row.id), { key });
    keep(of.kind, { ...row, change: "deleted" });
    const data = of.word === "binary" && row.url.split("internaldb://")[1];
    if (data) await send("DELETE", path("job-binary-internals", data)).catch(() => {}); // another binary may have it
  };
  const command = remove(of.word ? `${of.word} rm` : "job forget", row.name);
  return html`
    <${Question} title=${`Delete this ${of.one}?`} verb=${`Delete the ${of.one}`} danger confirm=${row.name}
        command=${command} act=${act} close=${close}>
      <p>${of.gone} This cannot be undone.</p>
    <//>`;
}

// Send a form, and show the record that the answer has.
export async function make(list, kind, body, key) {
  const made = (await call("POST", path(...list), { body, key }))[kind];
  keep(kind, made);
  return made;
}

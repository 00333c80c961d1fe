// The plan of a dry run, asked for as a person types.
import { useEffect, useState } from "./hooks.js";
import { html } from "./html.js";
import { send } from "./api.js";
import { inWords } from "./forms.js";
import { amount, quotaName } from "./offer.js";
import { Lines } from "./parts.js";
import { count, plain } from "./text.js";

const DELAY_MS = 350; // after the last key
const RETRY_MS = 3000; // when the daemon is away
const MOST = 5; // names of machines

const Changes = ({ rows, one, many }) => ["Create", "Delete"].map((verb) => {
  const own = rows.filter((each) => each.change === verb.toLowerCase());
  const names = own.slice(0, MOST).map((each) => plain(each.name)).join(", ");
  return own.length > 0 && html`<li>
    <strong class=${verb}>${verb} ${count(own.length, one, many)}</strong>${" "}
    <span class="faint">${names}${names && own.length > MOST && " …"}</span>
  </li>`;
});

const QuotaRow = ({ resource, needed, left, left_after: after }) => html`<tr>
  <th scope="row">${plain(quotaName(resource))}</th>
  ${[needed, left, after].map((n) => html`<td class="amount">${n === null ? "no limit" : amount(resource, n)}</td>`)}
</tr>`;

const Quota = ({ rows }) => html`
  <table class="quota">
    <thead><tr>
      ${["Quota", "Needed", "Left now", "After"].map((each) => html`<th scope="col" class="amount">${each}</th>`)}
    </tr></thead>
    <tbody>${rows.map(QuotaRow)}</tbody>
  </table>`;

function Drawn({ machines, volumes, addresses, quota, stages }) {
  const needed = quota.filter((each) => each.needed > 0);
  return html`<ul class="rows">
      <${Changes} rows=${machines} one="machine" />
      <${Changes} rows=${volumes} one="volume" />
      <${Changes} rows=${addresses} one="public address" many="public addresses" />
      <li>Then: ${stages.map((each) => plain(each.name)).join(", ") || "nothing"}</li>
    </ul>
    ${needed.length > 0 && html`<${Quota} rows=${needed} />`}`;
}

const textOf = (error) => inWords(error.message.replace(/^\$\.?/gm, ""));

// body: null while there is nothing to ask. The plan before stays until there is another. say(error): its text in
// words of the page; told(error): gets a refusal, null after a plan.
export function Plan({ method, address, body, say = textOf, told }) {
  const [{ plan, error, of }, set] = useState({});
  const text = JSON.stringify(body);
  useEffect(() => {
    if (!body) return undefined;
    const abort = new AbortController();
    const ask = async () => {
      try {
        const answer = await send(method, `${address}?dry_run=true`, { body, signal: abort.signal });
        set({ ...(await answer.json()), of: text });
        told?.(null);
      } catch (problem) {
        if (abort.signal.aborted) return;
        set({ error: problem, of: text });
        if (/^4/.test(problem.status)) told?.(problem);
        else timer = setTimeout(ask, RETRY_MS);
      }
    };
    let timer = setTimeout(ask, DELAY_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [text]);
  if (!body) return null;
  const isOld = of !== text;
  const state = error ? "Not yet possible:" : "svcd will:";
  return html`
    <div class="plan" role="status" aria-busy=${isOld}>
      <p class="faint">${isOld ? "Renewing the plan…" : state}</p>
      ${plan && html`<${Drawn} ...${plan} />`}
      ${error && html`<${Lines} text=${say(error)} />`}
    </div>`;
}

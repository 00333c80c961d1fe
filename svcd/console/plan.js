// The plan of a dry run, asked for as a person types.
import { useEffect, useState } from "./hooks.js";
import { html } from "./html.js";
import { send } from "./api.js";
import { amount, quotaName } from "./offer.js";
import { Lines } from "./parts.js";
import { count, plain } from "./text.js";

const DELAY_MS = 350; // after the last key
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

// A refusal for a glance: the fields of the form tell the rest.
function short(text) {
  const lines = text.replace(/^\$\.?/gm, "");
  return lines.replace(/: expected at least 1 (character|item), got .*$/gm, " is missing");
}

// body: null while there is nothing to ask. The plan before stays until there is another.
export function Plan({ method, address, body }) {
  const [{ plan, refusal, of }, set] = useState({});
  const text = JSON.stringify(body);
  useEffect(() => {
    if (!body) return undefined;
    const abort = new AbortController();
    const ask = async () => {
      try {
        const answer = await send(method, `${address}?dry_run=true`, { body, signal: abort.signal });
        set({ ...(await answer.json()), of: text });
      } catch (error) {
        if (!abort.signal.aborted) set({ refusal: short(error.message), of: text });
      }
    };
    const timer = setTimeout(ask, DELAY_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [text]);
  if (!body) return null;
  const still = html`
    <p class="faint">${refusal ? "Not yet possible:" : "Planning…"}</p>
    ${refusal && html`<${Lines} text=${refusal} />`}`;
  return html`
    <div class="plan" role="status" aria-busy=${of !== text}>${plan ? html`<${Drawn} ...${plan} />` : still}</div>`;
}

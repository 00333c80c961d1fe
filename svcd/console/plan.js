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
  return own.length > 0 && html`<li><strong class=${verb}>${verb} ${count(own.length, one, many)}</strong> <span class="faint">${names}${names && own.length > MOST && " …"}</span></li>`;
});

const Drawn = ({ machines, volumes, addresses, quota, stages }) => html`<ul class="rows">
    <${Changes} rows=${machines} one="machine" /><${Changes} rows=${volumes} one="volume" /><${Changes} rows=${addresses} one="public address" many="public addresses" />
    <li>Then: ${stages.map((each) => plain(each.name)).join(", ") || "nothing"}</li></ul>
  ${quota.some((each) => each.needed > 0) && html`<table class="quota"><thead><tr>${["Quota", "Needed", "Left now", "After"].map((each) => html`<th scope="col" class="amount">${each}</th>`)}</tr></thead>
    <tbody>${quota.filter((each) => each.needed > 0).map((each) => html`<tr><th scope="row">${plain(quotaName(each.resource))}</th>
      ${[each.needed, each.left, each.left_after].map((n) => html`<td class="amount">${n === null ? "no limit" : amount(each.resource, n)}</td>`)}</tr>`)}</tbody></table>`}`;

// A refusal for a glance: the fields of the form tell the rest.
const short = (text) => text.replace(/^\$\.?/gm, "").replace(/: expected at least 1 (character|item), got .*$/gm, " is missing");

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
  return html`<div class="plan" role="status" aria-busy=${of !== text}>${plan ? html`<${Drawn} ...${plan} />` : refusal ? html`<p class="faint">Not yet possible:</p><${Lines} text=${refusal} />` : html`<p class="faint">Planning…</p>`}</div>`;
}

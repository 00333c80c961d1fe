// The clusters: all of them with filters, and the few that Home shows.
import { drawnOnce, html } from "./html.js";
import { newCluster } from "./commands.js";
import { Command, Empty, Ending, Filter, Filters, Found, Head, Link, Search, Section, State, Table, Time, useTick } from "./parts.js";
import { created, isBusy, isUnwell, matches, newestFirst, size } from "./records.js";
import { to } from "./route.js";
import { useStore } from "./store.js";
import { plain } from "./text.js";
import { ago, left, moment } from "./time.js";

const ROWS = 200;
const FEW = 8; // rows of Home
const GROUPS = new Map([["unwell", isUnwell], ["busy", isBusy]]);
const CHOICES = [["", "all"], ["unwell", "needs attention"], ["busy", "is changing"]];

const Row = drawnOnce((cluster) => html`<tr key=${cluster.id}>
  <th scope="row"><${Link} view="clusters" id=${cluster.id} name=${cluster.name} /></th>
  <td><${State} word=${cluster.status} of=${isUnwell(cluster) && cluster.status !== "Error" ? "unwell" : undefined} />
    ${" "}<${Ending} cluster=${cluster} /></td>
  <td class="amount">${size(cluster)}</td>
  <td class="wide">${plain(cluster.plugin_name)} ${plain(cluster.engine_version)}</td>
  <td class="wide"><${Time} at=${cluster.created_at} /></td>
</tr>`);
const COLUMNS = { Name: "", Status: "", Machines: "amount", Plugin: "wide", Created: "wide" };

const List = ({ clusters }) => html`
  <${Table} columns=${COLUMNS}>${clusters.map((each) => Row(each, ago(created(each)) + left(moment(each.delete_at))))}<//>`;

const None = () => html`
  <${Empty} title="No clusters yet">
    <p><a href=${to(["launch"])}>Create one here</a> or with the command line; it appears as it is built.</p>
    <${Command} text=${newCluster("PLUGIN")} />
  <//>`;

const New = () => html`<a class="button" href=${to(["launch"])}>New cluster</a>`;

// The clusters that change or need attention, then the newest. clusters: the newest first.
export function FewClusters({ clusters }) {
  const isFirst = (each) => isBusy(each) || isUnwell(each);
  const few = [...clusters.filter(isFirst), ...clusters.filter((each) => !isFirst(each))].slice(0, FEW);
  const side = html`<${New} />
    ${clusters.length > FEW && html`<a class="push" href=${to(["clusters"])}>All clusters</a>`}`;
  return html`<${Section} id="clusters" title="Clusters" number=${clusters.length} side=${side}>
    ${few.length ? html`<${List} clusters=${few} />` : html`<${None} />`}
  <//>`;
}

export function Clusters({ query }) {
  const all = newestFirst(useStore().cluster.values());
  const { q = "", status = "" } = query;
  const isOf = GROUPS.get(status) ?? ((each) => !status || each.status === status);
  const clusters = all.filter((each) => isOf(each) && matches(q, each.name, each.id));
  useTick(all.some(isBusy));
  const statuses = new Set(all.map((each) => each.status));
  if (status && !GROUPS.has(status)) statuses.add(status);
  const rows = [...CHOICES, ...[...statuses].sort().map((word) => [word, word])];
  const shown = () => html`
    <${Filters}>
      <${Search} text="Find a cluster" of="q" query=${query} />
      <${Filter} label="Status" of="status" query=${query} rows=${rows} />
    <//>
    <${Found} one="cluster" number=${clusters.length} most=${ROWS}><${List} clusters=${clusters.slice(0, ROWS)} /><//>`;
  return html`
    <${Head} title="Clusters" number=${clusters.length}><${New} /><//>
    ${all.length ? shown() : html`<${None} />`}`;
}

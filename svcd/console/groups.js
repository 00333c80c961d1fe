// The groups of machines of a new cluster, and the sizes that fill them.
import { useRef } from "./hooks.js";
import { html } from "./html.js";
import { Field } from "./forms.js";
import { amount, choice, choicesOf, sized, usualFlavor } from "./offer.js";
import { Check, Name } from "./parts.js";
import { layout, SIZES } from "./request.js";
import { plain } from "./text.js";

const LABELS = {
  name: "Name of the group",
  count: "Machines",
  floating_ip_pool: "Public addresses",
  flavor_id: "Flavor",
  node_processes: "Processes",
};
const placeOf = (at, key) => `node_groups[${at}].${key}`;

export function groupsOf(values, source, flavor) {
  const ofTemplate = source.node_groups?.map(({ node_group_template_id: _, ...each }) => each);
  return values.node_groups[source.label] ?? ofTemplate ?? layout(source.node_processes, flavor);
}

// The words of the form for a place of a refusal. groups: of the request, undefined for those of a template.
export function labelOf(place, groups) {
  const [, at, key] = place.split(/[[\].]+/);
  return `Group ${groups?.[at].name || Number(at) + 1}, ${LABELS[key] ?? key}`;
}

// The faults, with a quota that is too small at the largest group: the refusal does not tell groups apart.
function atLargest(faults, groups) {
  if (!/^the quota/m.test(faults[""])) return faults;
  const counts = groups.map((each) => Number(each.count) || 0);
  return { ...faults, [placeOf(counts.indexOf(Math.max(...counts)), "count")]: ["beyond the quota"] };
}

// The fields of one group of machines, the one at `at`. put(key, value): changes it; faults: refusals by their place.
function Group({ group, at, known, flavors, pools, put, faults, remove }) {
  const field = (key, more) => {
    const name = placeOf(at, key);
    const form = { faults, values: { [name]: group[key] ?? "" }, change: (after) => put(key, after[name]) };
    return html`<${Field} form=${form} field=${{ name, label: LABELS[key], ...more }} />`;
  };
  const own = group.node_processes;
  const toggle = (each) => (own.includes(each) ? own.filter((other) => other !== each) : [...own, each]);
  const check = (each) => html`
    <${Check} key=${each} text=${plain(each)} on=${own.includes(each)} change=${() => put("node_processes", toggle(each))} />`;
  const pool = group.floating_ip_pool;
  return html`<fieldset class="group">
    <legend>Group <${Name}>${group.name || at + 1}<//></legend>
    <div class="trio">
      ${field("name")}
      ${field("count", { inputmode: "numeric" })}
      ${(pools[0] || pool) && field("floating_ip_pool", choice(LABELS.floating_ip_pool, pools, pool, "none"))}
    </div>
    ${field("flavor_id", choice(LABELS.flavor_id, flavors, group.flavor_id, "choose a flavor"))}
    ${field("node_processes", { draw: () => html`<div class="checks">${known.map(check)}</div>` })}
    ${remove && html`<div class="buttons">
      <button type="button" class="small" aria-label=${`Remove group ${plain(group.name)}`} onClick=${remove}>
        Remove the group
      </button>
    </div>`}
  </fieldset>`;
}

// The groups of each source are kept, so that a change of the source loses nothing.
export function Groups({ form: { values, faults, change }, source, offer }) {
  const usual = usualFlavor(offer.flavors);
  const rows = groupsOf(values, source, usual);
  const flavors = choicesOf(offer, "flavors", (each) => [each.id, sized(each)]);
  const pools = offer.networks.filter((each) => each.external).map((each) => [each.id, each.name]);
  const processes = Object.values(source.node_processes ?? {}).flat();
  const about = atLargest(faults, rows);
  const add = useRef(null);
  const set = (after, place) => change({ node_groups: { ...values.node_groups, [source.label]: after } }, place);
  const remove = (group) => () => {
    set(rows.filter((each) => each !== group));
    add.current.focus();
  };
  const draw = (group, at) => html`
    <${Group} key=${at} at=${at} group=${group} flavors=${flavors} pools=${pools} faults=${about}
      known=${[...new Set([...processes, ...group.node_processes])]}
      put=${(key, value) => set(rows.map((each) => (each === group ? { ...group, [key]: value } : each)), placeOf(at, key))}
      remove=${rows[1] && remove(group)} />`;
  // a button that fills the groups of a plugin
  const size = ([name, workers]) => {
    const machines = workers + 1;
    const { id, vcpus, ram_mib } = offer.flavors.find((each) => each.id === usual) ?? {};
    const groups = layout(source.node_processes, id, workers);
    const amounts = id && `, ${machines * vcpus} processors, ${amount("ram_mib", machines * ram_mib)}\u00a0GiB`;
    return html`
      <button type="button" aria-pressed=${JSON.stringify(groups) === JSON.stringify(rows)} onClick=${() => set(groups)}>
        ${name}<span>${machines} machines${amounts}</span>
      </button>`;
  };
  const another = { name: "", count: 1, flavor_id: usual, node_processes: [] };
  return html`${!source.id && html`<div class="trio">${SIZES.map(size)}</div>`}
    ${rows.map(draw)}
    <button type="button" ref=${add} onClick=${() => set([...rows, another])}>Add a group</button>`;
}

// What the cloud offers the project: flavors, key pairs, networks, quotas. All but `readOffer` is pure.
import { get, path } from "./api.js";

const LEAST = { ram_mib: 4096, vcpus: 2, disk_gib: 20 }; // of a machine; the command has the same rule
const NEARLY = 0.9; // part of a quota

// By the names of the offer, and by those of refusals.
const QUOTAS = {
  instances: "Machines",
  cores: "Processors",
  ram_mib: "Memory, GiB",
  volumes: "Volumes",
  volume_gib: "Volumes, GiB",
  floating_ips: "Public addresses",
  "MiB of memory": "Memory, GiB",
  "GiB of volumes": "Volumes, GiB",
  "floating IPs": "Public addresses",
};

export const readOffer = async () => (await get(path("cloud"))).cloud;

// A flavor with its sizes: two flavors of one cloud often differ in one of them only.
export function sized({ name, vcpus, ram_mib, disk_gib }) {
  const disk = disk_gib ? `${disk_gib} GiB disk` : "disk of the image";
  return `${name}: ${vcpus} vCPU, ${amount("ram_mib", ram_mib)} GiB RAM, ${disk}`;
}

// The id of the smallest flavor that is large enough, or of the only one; "" when a person must choose.
export function usualFlavor(flavors) {
  const suffices = (key, size) => (size || (key === "disk_gib" && LEAST[key])) >= LEAST[key];
  const large = flavors.find((each) => Object.keys(LEAST).every((key) => suffices(key, each[key])));
  return (large ?? (flavors.length === 1 ? flavors[0] : null))?.id ?? "";
}

// The list of a part, as [id, text]; null when it is not complete, so that a field must take what is typed.
export function choicesOf(offer, part, draw) {
  return offer[part].length && !offer.cut.includes(part) ? offer[part].map(draw) : null;
}

// A field of the cloud: a choice where the list is known, else its id is typed. value: what the field has, which may
// be of a template. empty: the text of no choice.
export function choice(label, rows, value, empty) {
  if (!rows) return { label: `${label} (its id)`, placeholder: empty };
  const others = value && !rows.some(([id]) => id === value) ? [[value, value]] : [];
  return { label, options: [["", empty], ...others, ...rows] };
}

export const quotaName = (resource) => QUOTAS[resource] ?? resource;

// An amount of a quota, in the unit of its name.
export function amount(resource, n) {
  const size = /mib/i.test(resource) ? n / 1024 : Number(n);
  return Number(size.toFixed(1)).toLocaleString("en");
}

// A refusal with the quotas as the page names them.
export const withQuotas = (text) => text.replace(/ ([\w ]+): needed (\d+), left (-?\d+);?/g, (_, name, needed, left) =>
  `\n${quotaName(name)}: ${amount(name, needed)} needed, ${amount(name, left)} left`);

function levelOf(used, limit) {
  if (!limit || used < limit * NEARLY) return "";
  return used < limit ? "nearly full" : "full";
}

// Quotas as Home shows them. level: "", "nearly full" or "full".
export function quotas(offer) {
  return offer.quota.map(({ resource, used, limit }) => ({
    resource,
    used,
    limit,
    name: quotaName(resource),
    text: amount(resource, used) + (limit === null ? ", no limit" : ` of ${amount(resource, limit)}`),
    level: levelOf(used, limit),
  }));
}

const LIMITED = ["servers", "volumes", "floating_ips"];

// Why parts of the quotas are not there. A service that the cloud does not have is no fault.
export function missing(offer) {
  const failed = offer.failed.filter(({ part, error_name: name }) => LIMITED.includes(part) && name !== "NOT_FOUND");
  return failed.map((each) => each.error_message);
}

// The names of what a run needs, as `svcd run` makes them: the same content has the same name and is made once.
import { ApiError, get, hex, newKey, path } from "./api.js";
import { make } from "./job_parts.js";
import { keep, store } from "./store.js";

const LONGEST = 50; // characters of a name
const DIGITS = 12; // of a digest in names
const LISTS = { job: "jobs", job_binary: "job-binaries" };

// A name that the API takes.
export function slug(text, most = LONGEST) {
  const name = text.replace(/[^A-Za-z0-9._-]+/g, "-").replace(/^[._-]+/, "");
  return name.slice(0, most).replace(/-+$/, "") || "x";
}

// The name of a file without its ending, and the ending.
export const split = (file) => /^(.+?)(\.[^.]+)?$/s.exec(file).slice(1);

function withEnding(file, more) {
  const [stem, ending] = split(file);
  const end = more + (ending ? `.${slug(ending, 10)}` : "");
  return slug(stem, LONGEST - end.length) + end;
}

// `count.pig` -> `count-3f2a9c0b1d4e.pig`.
export const withDigest = (name, digest) => withEnding(name, `-${digest.slice(0, DIGITS)}`);

// The name of the binary for the first content of a file.
export const ofFile = (file) => (slug(file) === slug(file, file.length) ? slug(file) : withEnding(file, ""));

// The SHA-256 sum of bytes, or of a promise of them; without encryption a browser computes none.
export function sumOf(content) {
  return Promise.resolve(content).then((all) => crypto.subtle.digest("SHA-256", all)).then(hex, newKey);
}

// A digest of short plain texts in their order: each follows its length, a number of eight bytes.
export function digestOf(parts) {
  const text = parts.map((part) => "\0".repeat(7) + String.fromCharCode(part.length) + part).join("");
  return sumOf(new TextEncoder().encode(text));
}

// The record of the first name that is free or has this content. Another tab may take the name meanwhile: then it
// looks again. same(row): whether the content is this one; body(name): of the request.
export async function reused(kind, names, same, body, key, again = true) {
  const rows = new Map([...store[kind].values()].map((row) => [row.name, row]));
  const name = names.find((each) => !rows.has(each) || same(rows.get(each)));
  if (!name) throw new ApiError(0, "", `the project has another ${names.at(-1)}: rename the file`);
  if (rows.has(name)) return rows.get(name);
  try {
    return await make([LISTS[kind]], kind, body(name), `${key}-${name}`);
  } catch (error) {
    if (!again || !error.name?.endsWith("NAME_ALREADY_EXISTS")) throw error;
    const [taken] = Object.values(await get(`${path(LISTS[kind])}?name=${name}`));
    for (const each of taken) keep(kind, each, store[kind].get(each.id));
    return reused(kind, names, same, body, key, false);
  }
}

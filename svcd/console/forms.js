// Forms: refusals of the API beside their fields, drafts that outlive the view but not the login, one act for two
// presses.
import { useEffect, useId, useLayoutEffect, useRef, useState } from "./hooks.js";
import { html } from "./html.js";
import { newKey, nextKey, refusalOf } from "./api.js";
import { withQuotas } from "./offer.js";
import { choices, Command, Lines, Problem } from "./parts.js";
import { session } from "./session.js";
import { plain } from "./text.js";

// A line with an option that is a secret.
const SECRET =
  /^.*(?:passw|passphrase|secret|token|credential|(?:access|api|private)[._-]?key)[^=\n]*=.*$\n?/gim;

// A refusal as people say it.
export const inWords = (text) => withQuotas(text)
  .replace(/(missing[,;]|expected at least 1 (character|item), got) .*/, "is missing")
  .replace(/int >= (\d+)/, "a whole number of at least $1")
  .replace("int <=", "at most");

// The lines of a refusal ("$.type: expected …") by the field that they are about; "" has the others.
// names: JSON paths of the fields. Of an array each item has its own, "groups[0].count". A refusal of a name that is
// taken has no path.
export function placed(error, names) {
  const found = {};
  const fieldAt = (where) =>
    names.find((each) => `${where}.`.startsWith(`${each}.`) || each.startsWith(`${where}.`)) ??
    (names.includes(where.split("[")[0]) ? where : "");
  const other = error.name?.endsWith("NAME_ALREADY_EXISTS") ? "name" : "";
  for (const line of error.message.split("\n")) {
    const [, where, text] = /^\$\.(\w+\[\d+\]\.\w+|[\w.]+)(.*)/s.exec(line) ?? [];
    const field = where ? fieldAt(where) : other;
    const rest = () => (where.slice(field.length) + text).replace(/^(: |\.)/, "");
    (found[field] ??= []).push(inWords(where && field ? rest() : line));
  }
  return found;
}

// The faults without those of no field and of fields that change. place: the only item of an array that changes.
function without(faults, names, place) {
  const stays = (name) => (place && name.includes("[") ? name !== place : !names.includes(name.split("[")[0]));
  return Object.fromEntries(Object.entries(faults).filter(([name]) => name && stays(name)));
}

// The control of a field; `own` are its attributes.
function control(own, options, lines) {
  if (options) return html`<select ...${own}>${choices(options)}</select>`;
  return lines ? html`<textarea rows=${lines} ...${own}></textarea>` : html`<input ...${own} />`;
}

// One field: {name: its JSON path, label, hint, options: [value, text] each, lines, draw(form): in place
// of a control, advice(form): below it, more: stands below "More", and attributes}.
export function Field({ form, field: { name, label, hint, options, lines, draw, advice, more: _, ...more } }) {
  const wrong = form.faults[name];
  const fault = wrong && html`<span class="fault" id=${`fault-${name}`} dir="auto">${plain(wrong.join("\n"))}</span>`;
  if (draw) {
    return html`
      <fieldset tabindex="-1" aria-invalid=${wrong && "true"}><legend>${label}</legend>${draw(form)}${fault}</fieldset>`;
  }
  const own = {
    value: form.values[name],
    onInput: (e) => form.change({ [name]: e.target.value }),
    autocomplete: "off",
    spellcheck: false,
    ...more,
    ...(wrong && { "aria-invalid": "true", "aria-describedby": `fault-${name}` }),
  };
  return html`<div class="field">
    <label>${label}${control(own, options, lines)}</label>${fault}${hint}${advice?.(form)}
  </div>`;
}

// What stays of the values when the view is left: no passwords, no lines with secrets. short: some lines are missing.
function draftOf(values) {
  const given = Object.entries(values).filter(([key]) => !key.endsWith("password"));
  const kept = Object.fromEntries(given.map(([key, value]) => [key, value.replace?.(SECRET, "") ?? value]));
  return { kept, short: given.some(([key, value]) => value !== kept[key]) };
}

// What all forms do: an action once at a time, with the faults of its refusal; the first wrong field gets the focus.
export function useAction() {
  const [faults, setFaults] = useState({});
  const [refusals, count] = useState(0);
  const [busy, setBusy] = useState(false);
  const own = useRef({ busy: false, left: false }).current;
  const box = useRef(null); // of the form
  useEffect(() => () => (own.left = true), []);
  useLayoutEffect(() => box.current?.querySelector('[aria-invalid="true"]')?.focus(), [refusals]); // with the faults
  const show = (found) => {
    setFaults(found);
    count((n) => n + 1);
  };
  // then(answer): unless the form was left; refuse(error): the faults.
  const press = (action, then, refuse) => async (event) => {
    event.preventDefault();
    if (own.busy) return;
    own.busy = true;
    setBusy(true);
    setFaults({});
    try {
      const answer = await action();
      if (!own.left) then(answer);
    } catch (error) {
      if (!own.left) show(refuse(error));
    }
    own.busy = false;
    setBusy(false);
  };
  return { box, busy, faults, setFaults, show, press };
}

// Fields that few people need. They are in view when one has a value from the start or a fault.
function More({ form, fields }) {
  const [open, set] = useState(() => fields.some(({ name }) => form.values[name]?.length));
  const isWrong = fields.some(({ name }) => form.faults[name]);
  return html`<details open=${open || isWrong} onToggle=${(event) => set(event.target.open)}>
    <summary>More: ${fields.map((each) => each.label.split(/[:,]/)[0].toLowerCase()).join(", ")}</summary>
    ${fields.map((field) => html`<${Field} key=${field.name} form=${form} field=${field} />`)}
  </details>`;
}

// A form. first: its values; fields(values, change): what is shown. act(values, key): sends it; done(answer):
// afterwards. check(values, key): asks for the plan and returns its drawing. wait: why nothing can be sent now;
// progress: a drawing of what is sent, until a value changes. aside(form): stands above the buttons, and may tell the
// form the refusal of a plan: told(error), null for none.
export function Form({ name, title, first, fields, verb, act, done, check, command, wait, progress, aside }) {
  const [{ drafts, draft }] = useState(() => ({ drafts: session.drafts, draft: session.drafts.get(name) }));
  const [values, setValues] = useState({ ...first, ...draft?.kept });
  const [plan, setPlan] = useState(null);
  const [planned, setPlanned] = useState({}); // the faults of the plan
  const { box, busy, faults, setFaults, press } = useAction();
  const id = useId();
  const key = useRef(draft?.key ?? newKey());
  const keep = (more) => drafts.set(name, { ...drafts.get(name), ...more, key: key.current });
  useEffect(() => {
    // a browser looks at the attribute once in a page only
    box.current.querySelector("[autofocus]:not([readonly])")?.focus();
  }, []);
  const change = (more, place) => {
    const names = Object.keys(typeof more === "function" ? more(values) : more);
    for (const set of [setFaults, setPlanned]) set((before) => without(before, names, place));
    key.current = newKey(); // another body is another request
    setValues((before) => {
      const after = { ...before, ...(typeof more === "function" ? more(before) : more) };
      keep(draftOf(after));
      return after;
    });
    setPlan(null);
  };
  const faultsOf = (error) => (error ? placed(error, Object.keys(first)) : {});
  const refuse = (error) => {
    key.current = nextKey(key.current, error);
    if (drafts.has(name)) keep();
    return faultsOf(error);
  };
  const told = (error) => {
    const found = faultsOf(error);
    setPlanned(found);
    setFaults((before) => (Object.keys(before).some(Boolean) ? found : before));
  };
  const send = (action, then) => press(() => action(values, key.current), then, refuse);
  // Also for a form that was left meanwhile: opened anew, it would offer what is done. What was typed since then stays.
  const finish = async (...given) => {
    const sent = drafts.get(name);
    const answer = await act(...given);
    if (drafts.get(name) === sent) drafts.delete(name);
    return answer;
  };
  const form = { values, change, faults: { ...planned, ...faults }, faultsOf, told };
  const still = busy || Boolean(wait);
  const shown = fields(values, change);
  const more = shown.filter((field) => field.more);
  return html`<form class="sheet" novalidate ref=${box} onSubmit=${send(finish, done)} aria-labelledby=${id}>
    <h2 id=${id}>${title}</h2>
    ${draft?.short && html`
      <p class="notice" role="status">The console does not keep lines with secrets: type them again.</p>`}
    ${shown.filter((field) => !field.more).map((field) => html`
      <${Field} key=${field.name} form=${form} field=${field} />`)}
    ${more.length > 0 && html`<${More} form=${form} fields=${more} />`}
    <div class="foot">
      ${aside?.(form)}
      ${plan}${(plan || busy || Object.keys(faults)[0]) && progress}
      <div class="buttons">
        ${faults[""] && html`<${Problem} title=${refusalOf(faults[""])}><${Lines} text=${faults[""].join("\n")} /><//>`}
        ${Object.keys(faults).some(Boolean) && html`<p class="fault" role="alert">Not done: see the marked fields.</p>`}
        <${Command} text=${command(values)} />
        ${check && html`<button type="button" disabled=${still} onClick=${send(check, setPlan)}>Check only</button>`}
        <button type="submit" class="primary" disabled=${still}>${busy ? "Sending…" : wait || verb}</button>
      </div>
    </div>
  </form>`;
}

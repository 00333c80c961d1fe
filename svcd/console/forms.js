// Forms: refusals of the API beside their fields, drafts that outlive the view but not the login, one act for two presses; uploads.
import { useEffect, useRef, useState } from "./hooks.js";
import { html } from "./html.js";
import { ApiError, get, newKey, path, renewed, send } from "./api.js";
import { addBinary } from "./commands.js";
import { Command, Lines, Name, options as choices, Problem, State } from "./parts.js";
import { session } from "./session.js";
import { keep } from "./store.js";
import { bytes, plain } from "./text.js";

const SECRET = /^.*(?:passw|passphrase|secret|token|credential|(?:access|api|private)[._-]?key)[^=\n]*=.*$\n?/gim; // a line with an option
const LONGEST = 50; // characters of a name
const STILL_MS = 75_000; // without a byte sent, or without the answer after the last one
const RANDOM = 12; // of them in the name of uploaded data

// The lines of a refusal ("$.type: expected …") by the field that they are about; "" has the others.
// names: JSON paths of the fields. A refusal of a name that is taken has no path.
export function placed(error, names) {
  const found = {};
  for (const line of error.message.split("\n")) {
    const [, where, text] = /^\$\.([\w.]+)(.*)/s.exec(line) ?? [];
    const field = where ? names.find((each) => `${where}.`.startsWith(`${each}.`) || each.startsWith(`${where}.`)) : error.name?.endsWith("NAME_ALREADY_EXISTS") && "name";
    (found[field || ""] ??= []).push(where && field ? (where.slice(field.length) + text).replace(/^(: |\.)/, "") : line);
  }
  return found;
}

// One field: {name: its JSON path, label, hint, options: [value, text] each, lines, draw(form): in place
// of a control, advice(form): below it, and attributes}.
export function Field({ form, field: { name, label, hint, options, lines, draw, advice, ...more } }) {
  const wrong = form.faults[name];
  const own = { value: form.values[name], onInput: (e) => form.change({ [name]: e.target.value }), autocomplete: "off", spellcheck: false, ...more };
  if (wrong) Object.assign(own, { "aria-invalid": "true", "aria-describedby": `fault-${name}` });
  const control = draw ? draw(form) : options ? html`<select ...${own}>${choices(options)}</select>`
    : lines ? html`<textarea rows=${lines} ...${own}></textarea>` : html`<input ...${own} />`;
  const fault = wrong && html`<span class="fault" id=${`fault-${name}`} dir="auto">${plain(wrong.join("\n"))}</span>`;
  return draw ? html`<fieldset tabindex="-1" aria-invalid=${wrong && "true"}><legend>${label}</legend>${control}${fault}</fieldset>`
    : html`<div class="field"><label>${label}${control}</label>${fault}${hint}${advice?.(form)}</div>`;
}

// A form. first: its values; fields(values): what is shown. act(values, key): sends it; done(answer): afterwards.
// check(values): asks for the plan and returns its drawing.
export function Form({ name, title, first, fields, verb, act, done, check, command }) {
  const [{ drafts, draft }] = useState(() => ({ drafts: session.drafts, draft: session.drafts.get(name) }));
  const [values, setValues] = useState({ ...first, ...draft?.kept });
  const [faults, setFaults] = useState({});
  const [plan, setPlan] = useState(null);
  const [busy, setBusy] = useState(false);
  const own = useRef({ key: newKey(), busy: false, left: false }).current;
  const form = useRef(null);
  useEffect(() => {
    form.current.querySelector("[autofocus]:not([readonly])")?.focus(); // a browser looks at the attribute once in a page only
    return () => (own.left = true);
  }, []);
  useEffect(() => form.current.querySelector('[aria-invalid="true"]')?.focus(), [faults]);
  const change = (more) => {
    setValues((before) => {
      const after = { ...before, ...(typeof more === "function" ? more(before) : more) };
      const kept = Object.fromEntries(Object.entries(after).filter(([key]) => !key.endsWith("password")).map(([key, value]) => [key, value.replace?.(SECRET, "") ?? value]));
      drafts.set(name, { kept, short: Object.entries(kept).some(([key, value]) => value !== after[key]) });
      return after;
    });
    setPlan(null);
    own.key = newKey(); // another body is another request
  };
  const press = (action, then) => async (event) => {
    event.preventDefault();
    if (own.busy) return;
    own.busy = true;
    setBusy(true);
    setFaults({});
    try {
      const answer = await action(values, own.key);
      if (!own.left) then(answer);
    } catch (error) {
      if (error.status) own.key = newKey(); // the daemon has answered: a new try is a new request
      setFaults(placed(error, Object.keys(first)));
    }
    own.busy = false;
    setBusy(false);
  };
  const finish = (answer) => {
    drafts.delete(name);
    done(answer);
  };
  return html`<form class="sheet" ref=${form} onSubmit=${press(act, finish)} aria-label=${title}><h2>${title}</h2>
    ${draft?.short && html`<p class="notice" role="status">The console does not keep lines with secrets: type them again.</p>`}
    ${fields(values).map((field) => html`<${Field} key=${field.name} form=${{ values, change, faults }} field=${field} />`)}
    ${faults[""] && html`<${Problem} title="Not done"><${Lines} text=${faults[""].join("\n")} /><//>`}
    ${Object.keys(faults).some(Boolean) && html`<p class="fault" role="alert">Not done: see the marked fields.</p>`}
    ${plan}<p class="faint">The same as a command:</p><${Command} text=${command(values)} />
    <div class="buttons">${check && html`<button type="button" disabled=${busy} onClick=${press(check, setPlan)}>Check only</button>`}
      <button type="submit" class="primary" disabled=${busy}>${busy ? "Sending…" : verb}</button></div></form>`;
}

// A name that the API takes, from the name of a file.
export const cleaned = (name) => name.replace(/[^A-Za-z0-9._-]+/g, "-").slice(-LONGEST).replace(/^[^A-Za-z0-9]+/, "") || "file";

// Send the bytes of a file as data, again after a new login when the token has ended. tell(part): from 0 to 1.
// A small request comes first: a browser may not see the refusal of a large one, whose connection is closed meanwhile.
async function put(name, file, tell, signal) {
  if (session.token) await get(`${path("job-binary-internals")}?limit=1`, signal);
  const { token } = session;
  try {
    return await sendBytes(name, file, token, tell, signal);
  } catch (error) {
    if (error.status !== 401 || !(await renewed(token)) || signal.aborted) throw error;
    tell(0);
    return put(name, file, tell, signal);
  }
}

// fetch reports no progress, so an older interface does.
function sendBytes(name, file, token, tell, signal) {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const request = new XMLHttpRequest();
    request.open("PUT", path("job-binary-internals", name));
    if (token) request.setRequestHeader("X-Auth-Token", token);
    request.responseType = "json";
    let timer;
    const wait = () => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        reject(new ApiError(0, "", "the file was not sent: nothing has moved for 75 seconds"));
        request.abort();
      }, STILL_MS);
    };
    request.upload.onprogress = (event) => {
      tell(event.loaded / event.total);
      wait();
    };
    request.onloadend = () => clearTimeout(timer);
    request.onload = () => {
      const { status, response } = request;
      if (status < 300) resolve(response.job_binary_internal);
      else reject(new ApiError(status, response?.error_name ?? "", response?.error_message ?? `the daemon answered ${status}`));
    };
    request.onerror = () => reject(new ApiError(0, "", "the file was not sent: the daemon does not answer, or the browser cannot read the file (is it a folder?)"));
    request.onabort = () => reject(signal.reason);
    signal.addEventListener("abort", () => request.abort());
    wait();
    request.send(file);
  });
}

// One file, sent at once. After a refusal its name can be changed; data that was sent is not sent again.
function Upload({ file, most, turn, signal, done }) {
  const [name, setName] = useState(cleaned(file.name));
  const [part, setPart] = useState(0);
  const [state, set] = useState(""); // why it was refused, or "done"
  const own = useRef({ key: newKey(), busy: false, data: null }).current;
  const go = async () => {
    if (own.busy) return;
    own.busy = true;
    set("");
    try {
      if (!file.size || file.size > most) throw new ApiError(0, "", file.size ? `the file has ${bytes(file.size)}; svcd takes at most ${bytes(most)}` : "the file is empty");
      own.data ??= await turn(() => put(`${name.slice(0, LONGEST - RANDOM - 1)}-${newKey().slice(0, RANDOM)}`, file, setPart, signal));
      const { job_binary: made } = await (await send("POST", path("job-binaries"), { body: { name, url: `internaldb://${own.data.id}` }, key: own.key, signal })).json();
      keep("job_binary", made);
      set("done");
      done(made);
    } catch (error) {
      if (error.status) own.key = newKey();
      set(error.message);
    }
    own.busy = false;
  };
  const rename = (event) => {
    setName(event.target.value);
    own.key = newKey();
  };
  useEffect(() => {
    go();
  }, []);
  return html`<li><div class="heading"><${Name}>${file.name}<//><span class="faint">${bytes(file.size)}</span>
      ${state === "done" ? html`<${State} word="Uploaded" of="done" />` : !state && html`<progress max="1" value=${part} aria-label=${`Upload of ${plain(file.name)}`}></progress>`}</div>
    ${state && state !== "done" && html`<div class="fault" role="alert"><${Lines} text=${state} /></div><div class="field"><label>Name of the binary<input value=${name} onInput=${rename} autocomplete="off" spellcheck=${false} /></label></div>
      <${Command} text=${addBinary(file.name, name)} /><div class="buttons"><button type="button" onClick=${go}>Upload again</button></div>`}</li>`;
}

// The place to choose and drop files, which are sent one after the other until the view or the login ends. done(binary): for
// each that svcd keeps.
export function Drop({ done }) {
  const [files, set] = useState([]);
  const [over, setOver] = useState(false);
  const [most, setMost] = useState(0); // bytes of a file; 0 until the daemon has told
  const last = useRef(Promise.resolve());
  const [{ left, signal }] = useState(() => {
    const left = new AbortController();
    return { left, signal: AbortSignal.any([left.signal, session.signal]) };
  });
  useEffect(() => () => left.abort(), []);
  useEffect(() => {
    get("/console/setup").then((setup) => setMost(setup.max_binary_bytes), () => setMost(Infinity));
    const missed = (event) => event.preventDefault(); // a browser would leave the page, and show the file
    for (const each of ["dragover", "drop"]) addEventListener(each, missed);
    return () => ["dragover", "drop"].forEach((each) => removeEventListener(each, missed));
  }, []);
  const turn = (action) => (last.current = last.current.then(action, action));
  const hover = (on) => (event) => {
    event.preventDefault();
    setOver(on);
  };
  const take = (list) => set([...files, ...[...list].map((file) => ({ file, key: newKey() }))]);
  return html`<div class=${`drop ${over ? "over" : ""}`} onDragOver=${hover(true)} onDragLeave=${hover(false)} onDrop=${(e) => { hover(false)(e); take(e.dataTransfer.files); }}>
    <label>Upload <input type="file" multiple onChange=${(e) => { take(e.target.files); e.target.value = ""; }} /></label> <span class="faint">or drop files here${most > 0 && most < Infinity && `, at most ${bytes(most)} each`}</span>
    ${most > 0 && html`<ul class="uploads">${files.map(({ file, key }) => html`<${Upload} key=${key} file=${file} most=${most} turn=${turn} signal=${signal} done=${done} />`)}</ul>`}</div>`;
}

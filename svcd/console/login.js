// Login with a password or a token, or the choice of a project where no token is needed.
import { useEffect, useRef, useState } from "./hooks.js";
import { html } from "./html.js";
import { endToken, send } from "./api.js";
import { Command, Lines, Name, Problem, useTitle } from "./parts.js";
import { login, session } from "./session.js";
import { plain } from "./text.js";

const ISSUE = "openstack token issue -f json";

// One request without the session's token.
const request = async (method, address, options) => (await send(method, address, { token: "", ...options })).json();

// Whether the token is good for the project.
const check = (project, token) => request("GET", `/v1.1/${encodeURIComponent(project)}/clusters?limit=1`, { token });

// The fields of the printed token, or of the token alone.
export function readToken(text) {
  try {
    const { id, project_id: project, expires } = JSON.parse(text);
    if (typeof id === "string") return { token: id, project: project ?? "", until: Date.parse(expires.replace(/\+0000$/, "Z")) || null };
  } catch {
    // it is no JSON: the token itself
  }
  return { token: text.trim(), until: null };
}

// Fault -> the texts beside the fields; "" for the form.
export function placed(error, mode, choosing) {
  const found = {};
  if (error.status === 400) {
    for (const line of error.message.split("\n")) {
      const [, name, text] = /^\$\.(user|domain|password|project): (.*)/.exec(line) ?? [null, "", line];
      found[name] = found[name] ? `${found[name]}\n${text}` : text;
    }
  } else if (error.status === 401) found[mode === "token" ? "token" : "password"] = error.message;
  else if ([403, 404].includes(error.status) && (choosing || mode !== "password")) found.project = error.message;
  else found[""] = error.message;
  return found;
}

const Field = ({ name, label, values, set, faults, type = "text", ...more }) => html`<label class="field">${label}
  <input name=${name} type=${type} value=${values[name]} onInput=${(e) => set(name, e.target.value)} autocomplete="off" spellcheck=${false} autocapitalize="none"
    aria-invalid=${faults[name] ? "true" : undefined} aria-describedby=${faults[name] ? `fault-${name}` : undefined} ...${more} />
  </label><${Fault} name=${name} faults=${faults} />`;
const Fault = ({ name, faults }) => faults[name] && html`<span class="fault" id=${`fault-${name}`} role="alert">${plain(faults[name])}</span>`;

// What both forms do: `act` once at a time, faults beside the fields, and no secret that stays.
function useForm(first, done) {
  const [values, setValues] = useState(first);
  const [faults, setFaults] = useState({});
  const [busy, setBusy] = useState(false);
  const running = useRef(false);
  const box = useRef(null);
  useEffect(() => () => (running.current = "gone"), []);
  useEffect(() => {
    box.current?.querySelector("[aria-invalid=true]")?.focus();
  }, [faults]);
  const set = (name, value) => {
    setValues((before) => ({ ...before, [name]: value }));
    setFaults((before) => ({ ...before, [name]: undefined }));
  };
  // needed: fields that must not be empty. act(values): the session that begins, or null when more is asked.
  const submit = (mode, needed, choosing, act) => async (event) => {
    event.preventDefault();
    if (running.current) return;
    const missing = Object.fromEntries(needed.filter((name) => !values[name].trim()).map((name) => [name, "must not be empty"]));
    if (Object.keys(missing).length) return setFaults(missing);
    running.current = true;
    setBusy(true);
    setFaults({});
    try {
      const begun = await act(values);
      if (running.current === "gone") return undefined;
      if (begun) {
        const { token, userId } = session;
        login(begun);
        if (token && userId) endToken(token); // a pasted one may be in use elsewhere
        return done();
      }
    } catch (error) {
      if (running.current === "gone") return undefined;
      setFaults(placed(error, mode, choosing));
      if (error.status === 401) setValues((before) => ({ ...before, password: "" }));
    }
    running.current = false;
    setBusy(false);
    return undefined;
  };
  return { values, set, faults, busy, submit, box };
}

// Log in with a password; for a project when it is known. Null: the user chooses one of `projects`.
async function withPassword({ user, domain, password, project }, choose) {
  const given = { user: user.trim(), domain: domain.trim(), password };
  let answer = await request("POST", "/console/login", { body: project ? { ...given, project } : given });
  if (!answer.project) endToken(answer.token); // the projects are known; the next request has the password, too
  if (!answer.project && answer.projects.length === 1) answer = await request("POST", "/console/login", { body: { ...given, project: answer.projects[0].id } });
  if (!answer.project) {
    choose(answer.projects);
    return null;
  }
  const { id, name } = answer.project;
  await check(id, answer.token);
  return { project: id, name, token: answer.token, until: Date.parse(answer.expires_at), user: given.user, domain: given.domain, userId: answer.user_id };
}

const withToken = async ({ project, token }) => {
  const found = readToken(token);
  const begun = { ...found, project: found.project || project.trim() };
  await check(begun.project, begun.token);
  return begun;
};

const withoutToken = async ({ project }) => {
  await check(project.trim(), "");
  return { project: project.trim() };
};

// The page before a project is open.
export function Login({ done, reason }) {
  const passwords = session.passwords && isSecureContext;
  const [mode, setMode] = useState(session.auth === "none" ? "none" : passwords ? "password" : "token");
  const [projects, choose] = useState(null);
  const form = useForm({ user: session.user, domain: session.domain || "Default", password: "", project: session.project || session.home, token: "" }, done);
  const { values, set, faults, busy, submit, box } = form;
  useTitle(mode === "none" ? "Choose a project" : "Log in");
  const offer = (found) => {
    choose(found);
    set("project", found.some((each) => each.id === values.project) ? values.project : found[0].id);
  };
  const acts = {
    none: [["project"], withoutToken],
    token: [readToken(values.token).project ? ["token"] : ["project", "token"], withToken],
    password: [["user", "domain", "password"], (given) => withPassword(projects ? given : { ...given, project: "" }, offer)],
  };
  const [needed, act] = acts[mode];
  const field = { values, set, faults };
  return html`<form class="login" ref=${box} novalidate onSubmit=${submit(mode, needed, Boolean(projects), act)}>
    <h1>${mode === "none" || projects ? "Choose a project" : "Log in"}</h1>
    ${reason && html`<p class="notice" role="status">${reason}</p>`}
    ${mode === "password" && !projects && html`
      <${Field} name="user" label="User" autocomplete="username" autofocus ...${field} />
      <${Field} name="domain" label="Domain" ...${field} />
      <${Field} name="password" label="Password" type="password" autocomplete="current-password" ...${field} />`}
    ${mode === "password" && projects && html`<label class="field">Project
      <select name="project" value=${values.project} onChange=${(e) => set("project", e.target.value)} autofocus>${projects.map((each) => html`<option key=${each.id} value=${each.id}>${plain(each.name)}${projects.some((other) => other !== each && other.name === each.name) ? ` (${each.id})` : ""}</option>`)}</select></label>
      <${Fault} name="project" faults=${faults} /><${Fault} name="password" faults=${faults} />`}
    ${mode !== "password" && html`<${Field} name="project" label="Project id" autofocus ...${field} />`}
    ${mode === "token" && html`<${Field} name="token" label="Token" type="password" ...${field} />
      <p class="faint">Paste a token, or all that this command prints. It stays in this tab.</p><${Command} text=${ISSUE} />`}
    ${faults[""] && html`<${Problem} title="Not logged in"><${Lines} text=${faults[""]} /><//>`}
    <div class="buttons">
      ${projects && html`<button type="button" onClick=${() => choose(null)}>Back</button>`}
      ${passwords && mode !== "none" && !projects && html`<button type="button" onClick=${() => setMode(mode === "token" ? "password" : "token")}>${mode === "token" ? "Use a password" : "Use a token"}</button>`}
      <button type="submit" class="primary">${busy ? "Checking…" : mode === "none" || projects ? "Show the project" : "Log in"}</button></div>
  </form>`;
}

// A new login for the same user and project, above the view. ended: the token is not valid any more.
export function Again({ ended, done, close, leave }) {
  const dialog = useRef(null);
  const { user, domain, project } = session;
  const mode = user && session.passwords && isSecureContext ? "password" : "token";
  const { values, set, faults, busy, submit, box } = useForm({ user, domain, password: "", project, token: "" }, done);
  useEffect(() => {
    dialog.current.showModal();
  }, []);
  const act = mode === "password" ? (given) => withPassword(given) : async (given) => {
    const begun = await withToken({ ...given, project });
    if (begun.project !== project) throw Object.assign(new Error("the token is for another project"), { status: 401 });
    return begun;
  };
  const field = { values, set, faults };
  return html`<dialog ref=${dialog} aria-labelledby="again" onCancel=${(e) => ended && e.preventDefault()} onClose=${() => !ended && close()}>
    <form ref=${box} novalidate onSubmit=${submit(mode, [mode], false, act)}>
      <h2 id="again">Log in again</h2>
      <p>${ended ? "Your login has ended." : "Your login ends soon."} The page stays as it is, with all that you have typed.</p>
      <p class="faint">${mode === "password" && html`User <${Name}>${user}<//>, `}project <${Name}>${session.name || project}<//></p>
      ${mode === "password" ? html`<${Field} name="password" label="Password" type="password" autocomplete="current-password" autofocus ...${field} /><${Fault} name="project" faults=${faults} />`
        : html`<${Field} name="token" label="Token" type="password" autofocus ...${field} /><${Fault} name="project" faults=${faults} /><${Command} text=${ISSUE} />`}
      ${faults[""] && html`<${Problem} title="Not logged in"><${Lines} text=${faults[""]} /><//>`}
      <div class="buttons"><button type="button" onClick=${leave}>Log out</button>${!ended && html`<button type="button" onClick=${close}>Later</button>`}
        <button type="submit" class="primary">${busy ? "Checking…" : "Log in"}</button></div>
    </form></dialog>`;
}

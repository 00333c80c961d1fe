// Login with a password or a token, or the choice of a project where no token is needed.
import { useState } from "./hooks.js";
import { html } from "./html.js";
import { call, endToken, send } from "./api.js";
import { Field, placed, useAction } from "./forms.js";
import { Command, Dialog, Lines, Name, Problem, useTitle } from "./parts.js";
import { login, session } from "./session.js";

const ISSUE = "openstack token issue -f json";

// Whether the token is good for the project.
const check = (project, token) => send("GET", `/v1.1/${encodeURIComponent(project)}/clusters?limit=1`, { token });

// The fields of the printed token, or of the token alone.
export function readToken(text) {
  try {
    const { id, project_id: project, expires } = JSON.parse(text);
    const until = () => Date.parse(expires.replace(/\+0000$/, "Z")) || null;
    if (typeof id === "string") return { token: id, project: project ?? "", until: until() };
  } catch {
    // it is no JSON: the token itself
  }
  return { token: text.trim(), until: null };
}

// Fault -> the lines beside the fields; "" for the form.
export function faultsOf(error, mode, choosing) {
  if (error.status === 400) return placed(error, ["user", "domain", "password", "project"]);
  const found = [error.message];
  if (error.status === 401) return mode === "token" ? { token: found } : { password: found };
  const isOfProject = [403, 404].includes(error.status) && (choosing || mode !== "password");
  return isOfProject ? { project: found } : { "": found };
}

// What both forms do: `act`, faults beside the fields, and no secret that stays.
function useForm(first, done) {
  const [values, setValues] = useState(first);
  const { box, busy, faults, setFaults, show, press } = useAction();
  const change = (more) => {
    setValues((before) => ({ ...before, ...more }));
    const none = Object.fromEntries(Object.keys(more).map((name) => [name, undefined]));
    setFaults((before) => ({ ...before, ...none }));
  };
  const open = (begun) => {
    if (!begun) return;
    const { token, userId } = session;
    login(begun);
    if (token && userId) endToken(token); // a pasted one may be in use elsewhere
    done();
  };
  // needed: fields that must not be empty. act(values): the session that begins, or null when more is asked.
  const submit = (mode, needed, choosing, act) => (event) => {
    const empty = needed.filter((name) => !values[name].trim());
    if (empty.length) {
      event.preventDefault();
      return show(Object.fromEntries(empty.map((name) => [name, ["must not be empty"]])));
    }
    const refuse = (error) => {
      if (error.status === 401) setValues((before) => ({ ...before, password: "" }));
      return faultsOf(error, mode, choosing);
    };
    return press(() => act(values), open, refuse)(event);
  };
  const shown = [];
  const field = (name, label, more) => {
    shown.push(name);
    return html`<${Field} form=${{ values, faults, change }} field=${{ name, label, autocapitalize: "none", ...more }} />`;
  };
  // The faults of no field that stands above.
  const refusal = () => {
    const left = Object.keys(faults).filter((name) => faults[name] && !shown.includes(name));
    const text = left.flatMap((name) => faults[name]).join("\n");
    return text && html`<${Problem} title="Not logged in"><${Lines} text=${text} /><//>`;
  };
  return { values, change, busy, submit, box, field, refusal };
}

// Log in with a password; for a project when it is known. Null: the user chooses one of `projects`.
async function withPassword({ user, domain, password, project }, choose) {
  const given = { user: user.trim(), domain: domain.trim(), password };
  const logIn = (more) => call("POST", "/console/login", { token: "", body: { ...given, ...more } });
  let answer = await logIn(project && { project });
  if (!answer.project) {
    const { token, projects } = answer;
    endToken(token); // the projects are known; the next request has the password, too
    if (projects.length === 1) answer = await logIn({ project: projects[0].id });
  }
  if (!answer.project) {
    choose(answer.projects);
    return null;
  }
  const { id, name } = answer.project;
  await check(id, answer.token);
  const until = Date.parse(answer.expires_at);
  const { token, user_id: userId } = answer;
  return { project: id, name, token, until, user: given.user, domain: given.domain, userId };
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

// The name of a project, with its id if another one has the same name.
function distinct({ id, name }, projects) {
  return projects.some((other) => other.id !== id && other.name === name) ? `${name} (${id})` : name;
}

// The page before a project is open.
export function Login({ done, reason }) {
  const passwords = session.passwords && isSecureContext;
  const [mode, setMode] = useState(session.auth === "none" ? "none" : passwords ? "password" : "token");
  const [projects, choose] = useState(null);
  const { user, domain, project, home } = session;
  const first = { user, domain: domain || "Default", password: "", project: project || home, token: "" };
  const { values, change, busy, submit, box, field, refusal } = useForm(first, done);
  useTitle(mode === "none" ? "Choose a project" : "Log in");
  const offer = (found) => {
    choose(found);
    change({ project: found.some((each) => each.id === values.project) ? values.project : found[0].id });
  };
  const acts = {
    none: [["project"], withoutToken],
    token: [readToken(values.token).project ? ["token"] : ["project", "token"], withToken],
    password: [
      ["user", "domain", "password"],
      (given) => withPassword(projects ? given : { ...given, project: "" }, offer),
    ],
  };
  const [needed, act] = acts[mode];
  const isLast = mode === "none" || projects; // of the questions
  const options = { options: projects?.map((each) => [each.id, distinct(each, projects)]), autofocus: true };
  const other = mode === "token" ? "password" : "token";
  return html`<form class="login" ref=${box} novalidate onSubmit=${submit(mode, needed, Boolean(projects), act)}>
    <h1>${isLast ? "Choose a project" : "Log in"}</h1>
    ${reason && html`<p class="notice" role="status">${reason}</p>`}
    ${mode === "password" && !projects && [
      field("user", "User", { autocomplete: "username", autofocus: true }),
      field("domain", "Domain"),
      field("password", "Password", { type: "password", autocomplete: "current-password" }),
    ]}
    ${mode === "password" && projects && field("project", "Project", options)}
    ${mode !== "password" && field("project", "Project id", { autofocus: true })}
    ${mode === "token" && html`${field("token", "Token", { type: "password" })}
      <p class="faint">Paste a token, or all that this command prints. It stays in this tab.</p>
      <${Command} open text=${ISSUE} />`}
    ${refusal()}
    <div class="buttons">
      ${projects && html`<button type="button" onClick=${() => choose(null)}>Back</button>`}
      ${passwords && !isLast && html`<button type="button" onClick=${() => setMode(other)}>Use a ${other}</button>`}
      <button type="submit" class="primary">${busy ? "Checking…" : isLast ? "Show the project" : "Log in"}</button>
    </div>
  </form>`;
}

// A new login for the same user and project, above the view. ended: the token is not valid any more.
export function Again({ ended, done, close, leave }) {
  const { user, domain, project } = session;
  const mode = user && session.passwords && isSecureContext ? "password" : "token";
  const { busy, submit, box, field, refusal } = useForm({ user, domain, password: "", project, token: "" }, done);
  const forProject = async (given) => {
    const begun = await withToken({ ...given, project });
    if (begun.project !== project) throw Object.assign(new Error("the token is for another project"), { status: 401 });
    return begun;
  };
  const act = mode === "password" ? (given) => withPassword(given) : forProject;
  const [label, autocomplete] = mode === "password" ? ["Password", "current-password"] : ["Token", "off"];
  return html`
    <${Dialog} aria-labelledby="again"
        onCancel=${(e) => ended && e.preventDefault()} onClose=${() => !ended && close()}>
      <form ref=${box} novalidate onSubmit=${submit(mode, [mode], false, act)}>
        <h2 id="again">Log in again</h2>
        <p>Your login ${ended ? "has ended" : "ends soon"}. The page stays as it is, with all that you have typed.</p>
        <p class="faint">
          ${mode === "password" && html`User <${Name}>${user}<//>, `}project <${Name}>${session.name || project}<//>
        </p>
        ${field(mode, label, { type: "password", autocomplete, autofocus: true })}
        ${mode === "token" && html`<${Command} open text=${ISSUE} />`}
        ${refusal()}
        <div class="buttons">
          <button type="button" onClick=${leave}>Log out</button>
          ${!ended && html`<button type="button" onClick=${close}>Later</button>`}
          <button type="submit" class="primary">${busy ? "Checking…" : "Log in"}</button>
        </div>
      </form>
    <//>`;
}

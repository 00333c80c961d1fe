// Login with a token, or the choice of a project where no token is needed.
import { useState } from "./hooks.js";
import { html } from "./html.js";
import { path, get } from "./api.js";
import { Command, Lines, Problem, useTitle } from "./parts.js";
import { login, logout, session } from "./session.js";

export function Login({ done, reason }) {
  const needed = session.auth !== "none";
  const [project, setProject] = useState(session.project);
  const [token, setToken] = useState("");
  const [fault, setFault] = useState("");
  const [busy, setBusy] = useState(false);
  useTitle("Log in");
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    setFault("");
    login({ project: project.trim(), token: token.trim() });
    try {
      await get(`${path("clusters")}?limit=1`);
      done();
    } catch (error) {
      logout();
      setFault(error.message);
      setBusy(false);
    }
  };
  return html`<form class="login" onSubmit=${submit}>
    <h1>${needed ? "Log in" : "Choose a project"}</h1>
    ${reason && !fault && html`<p class="notice" role="status">${reason}</p>`}
    <label class="field">Project id<input value=${project} onInput=${(e) => setProject(e.target.value)} required autocomplete="off" spellcheck=${false} autofocus /></label>
    ${needed && html`<label class="field">Token<input type="password" value=${token} onInput=${(e) => setToken(e.target.value)} required autocomplete="off" /></label>
      <p class="faint">Get both with the client of OpenStack. The token stays in this tab.</p>
      <${Command} text="openstack token issue -f value -c project_id -c id" />`}
    ${fault && html`<${Problem} title="Not logged in"><${Lines} text=${fault} /><//>`}
    <div class="buttons"><button type="submit" class="primary" disabled=${busy || !project.trim() || (needed && !token.trim())}>${busy ? "Checking…" : needed ? "Log in" : "Show the project"}</button></div>
  </form>`;
}

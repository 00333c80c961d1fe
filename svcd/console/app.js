// The frame of the page: navigation, the state of the live connection, and the view of the address.
import { render } from "./preact.js";
import { useEffect, useState } from "./hooks.js";
import { html } from "./html.js";
import { get, onRefusal } from "./api.js";
import { Cluster } from "./cluster.js";
import { Home } from "./home.js";
import { Job, Jobs } from "./jobs.js";
import { Login } from "./login.js";
import { Empty, Lines, Name, Problem } from "./parts.js";
import { to, useRoute } from "./route.js";
import { Run } from "./run.js";
import { Runs } from "./runs.js";
import { begin, isOpen, logout, session } from "./session.js";
import { close, open, useStore } from "./store.js";

const LIVE = { live: "Live", waiting: "Reconnecting", ended: "Not live" };

function View({ route }) {
  const [view = "clusters", id] = route.parts;
  if (view === "clusters" && id) return html`<${Cluster} key=${id} id=${id} query=${route.query} />`;
  if (view === "clusters") return html`<${Home} query=${route.query} />`;
  if (view === "runs" && id) return html`<${Run} key=${id} id=${id} query=${route.query} />`;
  if (view === "runs") return html`<${Runs} query=${route.query} />`;
  if (view === "jobs" && id) return html`<${Job} key=${id} id=${id} query=${route.query} />`;
  if (view === "jobs") return html`<${Jobs} query=${route.query} />`;
  return html`<${Empty} title="The console has no such page"><p><a href=${to([])}>Go home</a></p><//>`;
}

function Live() {
  const { live, why } = useStore();
  return html`<span class=${`live ${live}`} role="status" title=${why}><i aria-hidden="true"></i>${LIVE[live]}</span>`;
}

function Notices() {
  const { live, why, loaded, problem } = useStore();
  if (problem && !loaded) return html`<${Problem} title="The project cannot be shown"><${Lines} text=${problem} /><//>`;
  if (problem) return html`<div class="notice" role="status"><strong>The page may be out of date: <bdi>${problem}</bdi></strong> It tries again by itself.</div>`;
  if (live === "live" || !loaded || !why) return null;
  const text = live === "waiting" ? "The page shows the state before, and tries again by itself." : "The page shows the state when it was opened: reload it to see changes.";
  return html`<div class="notice" role="status"><strong>No live connection: <bdi>${why}</bdi></strong> ${text}</div>`;
}

function App() {
  const route = useRoute();
  const [ready, setReady] = useState(isOpen());
  const [reason, setReason] = useState("");
  const { loaded, problem } = useStore();
  useEffect(() => {
    if (!ready) return undefined;
    onRefusal(() => {
      logout();
      setReason("The token is not valid any more: log in again. The page comes back to where it was.");
      setReady(false);
    });
    open();
    return close;
  }, [ready]);
  useEffect(() => {
    scrollTo(0, 0);
  }, [route.parts.join("/")]);
  const leave = () => {
    logout();
    session.project = "";
    setReason("");
    setReady(false);
  };
  const at = route.parts[0] ?? "clusters";
  return html`<a class="skip" href="#main" onClick=${(e) => { e.preventDefault(); document.getElementById("main").focus(); }}>To the content</a>
    <header class="bar-top"><a class="brand" href=${to([])}><img src="/console/icon.svg" alt="" width="24" height="24" />svcd</a>
      ${ready && html`<nav aria-label="Views"><a href=${to([])} aria-current=${at === "clusters" ? "page" : undefined}>Home</a><a href=${to(["runs"])} aria-current=${at === "runs" ? "page" : undefined}>Runs</a><a href=${to(["jobs"])} aria-current=${at === "jobs" ? "page" : undefined}>Jobs</a></nav>
        <div class="push who-where"><${Live} /><button type="button" class="small" title="Another project" onClick=${leave}><${Name}>${session.project}<//></button></div>`}</header>
    <main id="main" tabindex="-1">${!ready ? html`<${Login} done=${() => setReady(true)} reason=${reason} />` : html`<${Notices} />${loaded ? html`<${View} route=${route} />` : !problem && html`<p class="faint" role="status">Reading the project…</p>`}`}</main>`;
}

const root = document.getElementById("app");
try {
  begin(await get("/console/setup"));
  root.textContent = "";
  render(html`<${App} />`, root);
} catch (error) {
  root.textContent = `The console cannot start: ${error.message}`;
}

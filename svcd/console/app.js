// The frame of the page: navigation, the state of the live connection, and the view of the address.
import { render } from "./preact.js";
import { useEffect, useState } from "./hooks.js";
import { html } from "./html.js";
import { endToken, get, onRefusal } from "./api.js";
import { Cluster } from "./cluster.js";
import { Events } from "./events.js";
import { Home } from "./home.js";
import { Images } from "./images.js";
import { Job, Jobs } from "./jobs.js";
import { Launch } from "./launch.js";
import { Again, Login } from "./login.js";
import { Empty, Lines, Name, Problem, useTick } from "./parts.js";
import { to, useRoute } from "./route.js";
import { Run } from "./run.js";
import { Runs } from "./runs.js";
import { begin, expire, isOpen, logout, remaining, session } from "./session.js";
import { close, onLeaving, open, renew, store, useStore } from "./store.js";

const VIEWS = [
  ["clusters", "Home"],
  ["runs", "Runs"],
  ["jobs", "Jobs"],
  ["events", "Events"],
  ["images", "Images"],
];
const WARNING_MS = 5 * 60_000;
const LIVE = { live: "Live", waiting: "Reconnecting", ended: "Not live" };

function View({ route }) {
  const [view = "clusters", id] = route.parts;
  if (view === "clusters" && id) return html`<${Cluster} key=${id} id=${id} query=${route.query} />`;
  if (view === "clusters") return html`<${Home} query=${route.query} />`;
  if (view === "runs" && id) return html`<${Run} key=${id} id=${id} query=${route.query} />`;
  if (view === "runs") return html`<${Runs} query=${route.query} />`;
  if (view === "events") return html`<${Events} query=${route.query} />`;
  if (view === "jobs" && id) return html`<${Job} key=${id} id=${id} query=${route.query} />`;
  if (view === "jobs") return html`<${Jobs} query=${route.query} />`;
  if (view === "launch") return html`<${Launch} />`;
  if (view === "images") return html`<${Images} />`;
  return html`<h1 class="unseen">Not found</h1><${Empty} title="The console has no such page"><p><a href=${to([])}>Go home</a></p><//>`;
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

// The end of the login, some minutes before it comes. The text changes once a minute, for it is read aloud.
function Ending({ again }) {
  useTick(1000);
  if (remaining() > WARNING_MS) return null;
  return html`<div class="notice ending" role="status"><strong>${remaining() > 0 ? `Your login ends in ${Math.ceil(remaining() / 60_000)} min.` : "Your login has ended."}</strong>
    <button type="button" class="small" onClick=${again}>Log in again</button></div>`;
}

// End the session of this tab, and its token if a password has got it: a pasted one may be in use elsewhere.
function leaveSession() {
  if (session.userId) endToken(session.token);
  logout();
}

// The requests that wait for a new token; null when none do.
let waiting = null;

function settle(renewed) {
  waiting?.resolve(renewed);
  waiting = null;
}

function App() {
  const route = useRoute();
  const [ready, setReady] = useState(isOpen());
  const [reason, setReason] = useState("");
  const [asks, ask] = useState(""); // for a new login above the view: "", "soon", "ended"
  const { loaded, problem } = useStore();
  const end = (why) => {
    settle(false);
    ask("");
    setReason(why);
    setReady(false);
  };
  useEffect(() => {
    if (!ready) return undefined;
    onRefusal(() => {
      if (!store.loaded) {
        expire();
        end("The token is not valid any more: log in again. The page comes back to where it was.");
        return false;
      }
      ask("ended");
      if (!waiting) {
        waiting = {};
        waiting.renewed = new Promise((resolve) => (waiting.resolve = resolve));
      }
      return waiting.renewed;
    });
    onLeaving(() => {
      leaveSession();
      end("You have logged out in another tab.");
    });
    open();
    return () => close();
  }, [ready]);
  useEffect(() => scrollTo(0, 0), [route.parts.join("/")]);
  useEffect(() => {
    if (ready && document.activeElement === document.body) document.getElementById("main").focus({ preventScroll: true }); // what had the focus is gone
  });
  const leave = () => {
    close(session.auth !== "none");
    leaveSession();
    end("");
  };
  const renewed = () => {
    renew();
    settle(true);
    ask("");
  };
  const at = route.parts[0] ?? "clusters";
  return html`<a class="skip" href="#main" onClick=${(e) => { e.preventDefault(); document.getElementById("main").focus(); }}>To the content</a>
    <header class="bar-top"><a class="brand" href=${to([])}><img src="/console/icon.svg" alt="" width="24" height="24" />svcd</a>
      ${ready && html`<nav aria-label="Views">${VIEWS.map(([view, name]) => html`<a key=${view} href=${to(view === "clusters" ? [] : [view])} aria-current=${at === view ? "page" : undefined}>${name}</a>`)}</nav>
        <div class="push who-where"><${Live} /><span class="project" title=${session.user || "Project"}><${Name}>${session.name || session.project}<//></span><button type="button" class="small" onClick=${leave}>${session.auth === "none" ? "Change project" : "Log out"}</button></div>`}</header>
    <main id="main" tabindex="-1">${!ready ? html`<${Login} done=${() => setReady(true)} reason=${reason} />` : html`<${Ending} again=${() => ask("soon")} /><${Notices} />${loaded ? html`<${View} route=${route} />` : !problem && html`<p class="faint" role="status">Reading the project…</p>`}`}</main>
    ${ready && asks && html`<${Again} ended=${asks === "ended"} done=${renewed} close=${() => ask("")} leave=${leave} />`}`;
}

const root = document.getElementById("app");
try {
  begin(await get("/console/setup"));
  root.textContent = "";
  render(html`<${App} />`, root);
} catch (error) {
  root.textContent = `The console cannot start: ${error.message}`;
}

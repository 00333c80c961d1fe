// The frame of the page: navigation, the state of the live connection, and the view of the address.
import { render } from "./preact.js";
import { useEffect, useState } from "./hooks.js";
import { html } from "./html.js";
import { endToken, get, onRefusal } from "./api.js";
import { Cluster } from "./cluster.js";
import { Clusters } from "./clusters.js";
import { Events } from "./events.js";
import { Home } from "./home.js";
import { Images } from "./images.js";
import { Job } from "./job.js";
import { Jobs } from "./jobs.js";
import { Keys } from "./keys.js";
import { Launch } from "./launch.js";
import { Again, Login } from "./login.js";
import { Empty, Head, Lines, Name, Problem, useTick } from "./parts.js";
import { to, useRoute, VIEWS } from "./route.js";
import { Run } from "./run.js";
import { RunProgram } from "./run_form.js";
import { Runs } from "./runs.js";
import { begin, expire, isOpen, logout, remaining, session } from "./session.js";
import { plain } from "./text.js";
import { close, onLeaving, open, renew, store, useStore } from "./store.js";

const WARNING_MS = 5 * 60_000;
const LIVE = { live: "Live", waiting: "Reconnecting", ended: "Not live" };

const NotFound = () => html`
  <${Head} title="Not found" class="unseen" />
  <${Empty} title="The console has no such page"><p><a href=${to([])}>Go home</a></p><//>`;

// Of a list, and of one record of it.
const SHOWN = new Map(Object.entries({
  "": [Home],
  clusters: [Clusters, Cluster],
  runs: [Runs, Run],
  jobs: [Jobs, Job],
  events: [Events],
  images: [Images],
  run: [RunProgram],
  launch: [Launch],
}));

function View({ route: { parts: [view = "", id], query } }) {
  const [List = NotFound, One = List] = SHOWN.get(view) ?? [];
  return html`<${id ? One : List} key=${id} id=${id} query=${query} />`;
}

function Live() {
  const { live, why } = useStore();
  return html`
    <span class=${`live ${live}`} role="status" title=${why}><i aria-hidden="true"></i>${LIVE[live]}</span>`;
}

const Notice = ({ title, why, text }) => html`
  <div class="notice" role="status"><strong>${title}: <bdi>${why}</bdi></strong> ${text}</div>`;

const STATE = {
  waiting: "It tries again by itself.",
  ended: "Reload the page to see changes.",
};

function Notices() {
  const { live, why, loaded, problem } = useStore();
  if (problem && !loaded) return html`<${Problem} title="The project cannot be shown"><${Lines} text=${problem} /><//>`;
  if (problem) return html`<${Notice} title="The page may be out of date" why=${problem} text="It tries again by itself." />`;
  if (live === "live" || !loaded || !why) return null;
  return html`<${Notice} title="No live connection" why=${why} text=${STATE[live]} />`;
}

// The word of the page that led to this one.
function Told() {
  const [text] = useState(() => {
    const { told } = store;
    store.told = "";
    return told;
  });
  return text && html`<p class="notice" role="status"><bdi>${plain(text)}</bdi></p>`;
}

// The end of the login, some minutes before it comes. The text changes once a minute, for it is read aloud.
function Ending({ again }) {
  useTick(true);
  const left = remaining();
  if (left > WARNING_MS) return null;
  return html`<div class="notice ending" role="status">
    <strong>Your login ${left > 0 ? `ends in ${Math.ceil(left / 60_000)} min` : "has ended"}.</strong>
    <button type="button" class="small" onClick=${again}>Log in again</button>
  </div>`;
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

function skip(event) {
  event.preventDefault();
  document.getElementById("main").focus();
}

// at: the view that is shown.
const Bar = ({ at, loaded, leave }) => html`
  <nav aria-label="Views">${VIEWS.map(([view, name]) => html`
    <a key=${view} href=${to(view ? [view] : [])} aria-current=${at === view ? "page" : undefined}>${name}</a>`)}
  </nav>
  <div class="push who-where">
    ${loaded && html`<${Keys} />`}
    <${Live} />
    <span class="project" title=${session.user || "Project"}><${Name}>${session.name || session.project}<//></span>
    <button type="button" class="small" onClick=${leave}>${session.auth === "none" ? "Change project" : "Log out"}</button>
  </div>`;

function App() {
  const route = useRoute();
  const [ready, setReady] = useState(isOpen());
  const [reason, setReason] = useState("");
  const [asks, ask] = useState(""); // for a new login above the view: soon or ended
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
  const place = route.parts.join("/");
  useEffect(() => scrollTo(0, 0), [place]);
  useEffect(() => {
    const isLost = document.activeElement === document.body; // what had the focus is gone
    if (ready && isLost) document.getElementById("main").focus({ preventScroll: true });
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
  const shown = loaded ? html`<${View} route=${route} />` : !problem && html`
    <p class="faint" role="status">Reading the project…</p>`;
  return html`
    <a class="skip" href="#main" onClick=${skip}>To the content</a>
    <header class="bar-top">
      <a class="brand" href=${to([])}><img src="/console/icon.svg" alt="" width="24" height="24" />svcd</a>
      ${ready && html`<${Bar} at=${route.parts[0] ?? ""} loaded=${loaded} leave=${leave} />`}
    </header>
    <main id="main" tabindex="-1">${ready
      ? html`<${Ending} again=${() => ask("soon")} /><${Notices} /><${Told} key=${place} />${shown}`
      : html`<${Login} done=${() => setReady(true)} reason=${reason} />`}
    </main>
    ${ready && asks && html`
      <${Again} ended=${asks === "ended"} done=${renewed} close=${() => ask("")} leave=${leave} />`}`;
}

const root = document.getElementById("app");
try {
  begin(await get("/console/setup"));
  root.textContent = "";
  render(html`<${App} />`, root);
} catch (error) {
  root.textContent = `The console cannot start: ${error.message}`;
}

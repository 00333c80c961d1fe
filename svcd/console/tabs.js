// Tabs of one browser with one user and project read one `watch`: one of them leads, and forwards what it reads.
//
// The tab that holds the lock leads. The names of lock and channel are a digest of the project and the user's id, both
// as the login has answered them; of the project and the token where the user is not known. So tabs of another project
// or user have other names, and no token leaves its tab. Each tab lists with its own token, and hears nothing after the
// end of it. A leader whose token is refused gives the lock away, and so does a tab that freezes; from one that does not
// answer it is taken. Where a page has no Web Locks, as without encryption, each tab watches for itself.
import { hex } from "./api.js";
import { remaining, session } from "./session.js";
import { watch } from "./stream.js";

const SILENCE_MS = 45_000; // the daemon writes at least every 15 seconds, and the leader forwards it
const ANSWER_MS = 3000;

async function sharedName() {
  if (!navigator.locks || !crypto.subtle || !globalThis.BroadcastChannel) return "";
  const who = session.userId ? ["user", session.userId] : ["token", session.token];
  const text = new TextEncoder().encode(JSON.stringify([session.project, ...who]));
  return `svcd ${hex(await crypto.subtle.digest("SHA-256", text))}`;
}

// Watches, here or by another tab, until `stop()`. take and tell: see `watch`. leave(): another tab has logged out.
// cursor: continue there; without one a `hello` says from where on changes are known.
export function share(take, tell, leave, cursor = "") {
  let stopped = false;
  let channel = null;
  let retire = null; // ends the leading of this tab
  // all changes up to `cursor` are known; until then those that the leader forwards may have a gap before them
  let known = false;
  let heard = performance.now();
  let timer; // of an answer that is waited for
  let queue = new AbortController();
  let name = "";
  let frozen = false;
  let refused = false; // the token of this tab: it waits for a new login, or for the word that the user has logged out
  let last = { live: "waiting", why: "" };

  // What the leader reads, in each tab.
  function receive({ event, data, id, live, why }) {
    if (stopped) return;
    known ||= event === "hello" || event === "reset";
    if (known && id) cursor = id;
    if (live) {
      last = { live, why };
      tell(live, why);
    } else if (event !== "beat" && known) take(event, data); // else the leader says where it is
  }

  function say(message) {
    receive(message);
    channel?.postMessage(message);
  }

  // Lead until `retire()`: the promise holds the lock.
  const lead = () => new Promise((done) => {
    clearTimeout(timer);
    known = true; // nothing is missed from here on
    const end = watch(
      (event, data, id) => say({ event, data, id }),
      (live, why) => {
        if (live === "refused") resign(why);
        else say({ live, why });
      },
      cursor,
    );
    retire = () => {
      retire = null;
      end();
      done();
    };
  });

  // The token of this tab is not valid any more; those of the others may be.
  function resign(why) {
    refused = true;
    clearTimeout(timer);
    queue.abort();
    retire?.();
    tell("ended", why);
  }

  // Wait for the lock, or take it.
  async function run(options = { signal: queue.signal }) {
    const own = queue.signal;
    try {
      await navigator.locks.request(name, options, () => (stopped || frozen || refused ? undefined : lead()));
    } catch {
      if (stopped || own.aborted) return;
      retire?.(); // another tab has taken the lock
      run();
    }
  }

  // Ask the leader for a sign of life, and take the lock when none comes.
  function ask() {
    if (retire || frozen || refused) return;
    clearTimeout(timer);
    channel.postMessage({ ask: true });
    timer = setTimeout(() => {
      if (stopped || retire || frozen || refused) return;
      queue.abort();
      queue = new AbortController();
      run({ steal: true });
    }, ANSWER_MS);
  }

  function hear({ data: message }) {
    if (stopped) return;
    heard = performance.now();
    if (message.ask) {
      if (retire) channel.postMessage({ here: cursor, ...last });
    } else if (message.logout) {
      stop();
      leave();
    } else if (!retire && !refused) {
      if (remaining() <= 0) return resign("your login has ended");
      clearTimeout(timer);
      receive(message);
      if (message.here === cursor) known ||= Boolean(cursor);
      else if (message.here) receive({ event: "hello", data: {}, id: message.here }); // changes were missed
    }
  }

  function freeze() {
    frozen = true;
    clearTimeout(timer);
    queue.abort();
    retire?.();
  }
  function thaw() {
    if (!frozen || stopped || refused) return;
    frozen = false;
    queue = new AbortController();
    known = false; // what the others have read meanwhile may be lost
    cursor = "";
    begin();
  }
  const look = () => !document.hidden && performance.now() - heard > SILENCE_MS && ask();
  const hidden = (event) => event.persisted && freeze();

  function begin() {
    run();
    ask();
  }

  function stop() {
    if (stopped) return;
    stopped = true;
    clearTimeout(timer);
    clearInterval(looks);
    queue.abort();
    retire?.();
    channel?.close();
    listening.abort();
  }

  const looks = setInterval(look, SILENCE_MS / 3);
  const listening = new AbortController();
  const on = (target, name, act) => target.addEventListener(name, act, { signal: listening.signal });
  on(document, "freeze", freeze);
  on(document, "resume", thaw);
  on(document, "visibilitychange", look);
  on(window, "pagehide", hidden);
  on(window, "pageshow", thaw);

  sharedName().then((found) => {
    if (stopped) return;
    name = found;
    if (!name) {
      lead();
      return;
    }
    channel = new BroadcastChannel(name);
    channel.onmessage = hear;
    begin();
  });

  return {
    stop,
    cursor: () => cursor,
    logout: () => channel?.postMessage({ logout: true }),
  };
}

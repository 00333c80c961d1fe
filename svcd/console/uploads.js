// Uploads: files become binaries, one after the other.
import { useEffect, useRef, useState } from "./hooks.js";
import { html } from "./html.js";
import { ApiError, get, newKey, nextKey, path, renewed } from "./api.js";
import { addBinary } from "./commands.js";
import { Command, Lines, Name, State } from "./parts.js";
import { ofFile, reused, sumOf, withDigest } from "./reuse.js";
import { session } from "./session.js";
import { store } from "./store.js";
import { bytes, plain } from "./text.js";

const STILL_MS = 75_000; // without a byte sent, or without the answer after the last one
const STILL = "the file was not sent: nothing has moved for 75 seconds";
const UNSENT =
  "the file was not sent: the daemon does not answer, or the browser cannot read the file (is it a folder?)";

// Send the bytes of a file as data, again after a new login when the token has ended. Data that is there is not sent.
// tell(part): from 0 to 1. The first request also shows a refusal: a browser may not see that of a large one, whose
// connection is closed meanwhile.
async function put(name, file, tell, signal) {
  const { binaries } = await get(`${path("job-binary-internals")}?name=${name}`, signal);
  const same = binaries.find((each) => each.name === name && each.datasize === file.size);
  if (same) return same;
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
        reject(new ApiError(0, "", STILL));
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
      const text = response?.error_message ?? `the daemon answered ${status}`;
      if (status < 300) resolve(response.job_binary_internal);
      else reject(new ApiError(status, response?.error_name ?? "", text));
    };
    request.onerror = () => reject(new ApiError(0, "", UNSENT));
    request.onabort = () => reject(signal.reason);
    signal.addEventListener("abort", () => request.abort());
    wait();
    request.send(file);
  });
}

// One file, sent at once. Data that was sent is not sent again. As with `svcd run`, a file whose name is taken becomes
// another binary, so that jobs keep theirs. ended(): after each try; ended(1): before another one.
function Upload({ file, most, turn, signal, done, ended }) {
  const name = ofFile(file.name);
  const [part, setPart] = useState(0);
  const [state, set] = useState(""); // done, or why it was refused
  const own = useRef({ key: newKey(), busy: false, data: null, left: false }).current;
  const go = async () => {
    if (own.busy) return;
    own.busy = true;
    set("");
    try {
      if (!file.size) throw new ApiError(0, "", "the file is empty");
      if (file.size > most) throw new ApiError(0, "", `the file has ${bytes(file.size)}; svcd takes at most ${bytes(most)}`);
      own.data ??= await turn(async () => {
        own.other ??= withDigest(name, await sumOf(file.arrayBuffer()));
        return put(own.other, file, setPart, signal);
      });
      signal.throwIfAborted();
      const url = `internaldb://${own.data.id}`;
      const same = (row) => row.url === url && (row.file_name ?? row.name) === file.name;
      const body = (free) => ({ name: free, url, ...(free === file.name ? {} : { file_name: file.name }) });
      const made = await reused("job_binary", [name, own.other], same, body, own.key);
      const old = made.name === name ? undefined : [...store.job_binary.values()].find((each) => each.name === name);
      own.note = old && `as ${made.name}: the project has another ${name}`;
      set("done");
      if (!own.left) done(made, old, file);
    } catch (error) {
      own.key = nextKey(own.key, error);
      set(error.message);
    }
    own.busy = false;
    ended();
  };
  useEffect(() => {
    go();
    return () => (own.left = true);
  }, []);
  const again = () => {
    ended(1);
    go();
  };
  const progress = html`<progress max="1" value=${part} aria-label=${`Upload of ${plain(file.name)}`}></progress>`;
  return html`<li>
    <div class="heading">
      <${Name}>${file.name}<//><span class="faint">${bytes(file.size)}</span>
      ${state === "done" ? html`<${State} word="Uploaded" of="done" />${own.note}` : !state && progress}
    </div>
    ${state && state !== "done" && html`
      <div class="fault" role="alert"><${Lines} text=${state} /></div>
      <${Command} open text=${addBinary(file.name, name)} />
      <div class="buttons"><button type="button" onClick=${again}>Upload again</button></div>`}
  </li>`;
}

// The place to choose and drop files, which are sent one after the other until the view or the login ends.
// done(binary, old, file): for each that svcd keeps. old: the one whose name the file has, if it is another.
// one: a file takes the place of the one before; taken(): files are chosen; busy(n): so many more files are under way.
export function Drop({ done, one, taken = () => {}, busy = () => {} }) {
  const [files, set] = useState([]);
  const [over, setOver] = useState(false);
  const [most, setMost] = useState(0); // bytes of a file; 0 until the daemon has told
  const last = useRef(Promise.resolve());
  const [{ left, signal }] = useState(() => {
    const left = new AbortController();
    return { left, signal: AbortSignal.any([left.signal, session.signal]) };
  });
  useEffect(() => {
    get("/console/setup").then((setup) => setMost(setup.max_binary_bytes), () => setMost(Infinity));
    const missed = (event) => event.preventDefault(); // a browser would leave the page, and show the file
    for (const each of ["dragover", "drop"]) addEventListener(each, missed, { signal: left.signal });
    return () => left.abort();
  }, []);
  const turn = (action) => (last.current = last.current.then(action, action));
  const hover = (on) => (event) => {
    event.preventDefault();
    setOver(on);
  };
  const take = (list) => {
    const chosen = [...list].slice(0, one && 1).map((file) => ({ file, key: newKey() }));
    busy(chosen.length);
    taken();
    set([...(one ? [] : files), ...chosen]);
  };
  const drop = (event) => {
    hover(false)(event);
    take(event.dataTransfer.files);
  };
  const choose = ({ target }) => {
    take(target.files);
    target.value = "";
  };
  const limit = most > 0 && most < Infinity && `, at most ${bytes(most)}${one ? "" : " each"}`;
  return html`
    <div class=${`drop ${over ? "over" : ""}`} onDragOver=${hover(true)} onDragLeave=${hover(false)} onDrop=${drop}>
      <label>Upload <input type="file" multiple=${!one} onChange=${choose} /></label>${" "}
      <span class="faint">or drop ${one ? "a file" : "files"} here${limit}</span>
      ${most > 0 && html`<ul class="uploads">${files.map(({ file, key }) => html`
        <${Upload} key=${key} file=${file} most=${most} turn=${turn} signal=${signal} done=${done} ended=${(n = -1) => busy(n)} />`)}
      </ul>`}
    </div>`;
}

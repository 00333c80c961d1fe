// Uploads: files become binaries, one after the other.
import { useEffect, useRef, useState } from "./hooks.js";
import { html } from "./html.js";
import { ApiError, call, get, hex, newKey, nextKey, path, renewed } from "./api.js";
import { addBinary } from "./commands.js";
import { Command, Lines, Name, State } from "./parts.js";
import { session } from "./session.js";
import { keep, store } from "./store.js";
import { bytes, plain } from "./text.js";

const LONGEST = 50; // characters of a name
const DIGITS = 12; // of the content's digest, in names
const STILL_MS = 75_000; // without a byte sent, or without the answer after the last one
const STILL = "the file was not sent: nothing has moved for 75 seconds";
const UNSENT =
  "the file was not sent: the daemon does not answer, or the browser cannot read the file (is it a folder?)";

// A name that the API takes, from the name of a file.
function cleaned(name) {
  const end = name.replace(/[^A-Za-z0-9._-]+/g, "-").slice(-LONGEST);
  return end.replace(/^[^A-Za-z0-9]+/, "") || "file";
}

// `count.pig` -> `count-3f2a9c0b1d4e.pig`: the name that `svcd run` gives to data, and to a binary whose own name is taken.
async function withDigits(name, file) {
  const [, stem, ending = ""] = /^(.*?)(\.\w{1,10})?$/.exec(name);
  const sum = file.arrayBuffer().then((content) => crypto.subtle.digest("SHA-256", content));
  // without encryption a browser computes no digest; `put` tells of a file that cannot be read
  const end = `-${(await sum.then(hex, newKey)).slice(0, DIGITS)}${ending}`;
  return stem.slice(0, LONGEST - end.length) + end;
}

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
// another binary, so that jobs keep theirs.
function Upload({ file, most, turn, signal, done }) {
  const name = cleaned(file.name);
  const [part, setPart] = useState(0);
  const [state, set] = useState(""); // why it was refused, or "done"
  const own = useRef({ key: newKey(), busy: false, data: null }).current;
  const go = async () => {
    if (own.busy) return;
    own.busy = true;
    set("");
    try {
      if (!file.size) throw new ApiError(0, "", "the file is empty");
      if (file.size > most) throw new ApiError(0, "", `the file has ${bytes(file.size)}; svcd takes at most ${bytes(most)}`);
      own.data ??= await turn(async () => {
        own.other ??= await withDigits(name, file);
        return put(own.other, file, setPart, signal);
      });
      const url = `internaldb://${own.data.id}`;
      const known = (wanted) => [...store.job_binary.values()].find((each) => each.name === wanted);
      const same = ({ name, file_name, ...row }) => row.url === url && (file_name ?? name) === file.name;
      const free = [name, own.other].find((each) => !known(each) || same(known(each)));
      if (!free) throw new ApiError(0, "", `the project has another ${own.other}: rename the file`);
      const body = { name: free, url, ...(free === file.name ? {} : { file_name: file.name }) };
      const send = () => call("POST", path("job-binaries"), { body, key: own.key, signal });
      const made = known(free) ?? (await send()).job_binary;
      const old = free === name ? undefined : known(name);
      own.note = old && `as ${free}: the project has another ${name}`;
      keep("job_binary", made);
      set("done");
      done(made, old);
    } catch (error) {
      own.key = nextKey(own.key, error);
      set(error.message);
    }
    own.busy = false;
  };
  useEffect(() => {
    go();
  }, []);
  const progress = html`<progress max="1" value=${part} aria-label=${`Upload of ${plain(file.name)}`}></progress>`;
  return html`<li>
    <div class="heading">
      <${Name}>${file.name}<//><span class="faint">${bytes(file.size)}</span>
      ${state === "done" ? html`<${State} word="Uploaded" of="done" />${own.note}` : !state && progress}
    </div>
    ${state && state !== "done" && html`
      <div class="fault" role="alert"><${Lines} text=${state} /></div>
      <${Command} text=${addBinary(file.name, name)} />
      <div class="buttons"><button type="button" onClick=${go}>Upload again</button></div>`}
  </li>`;
}

// The place to choose and drop files, which are sent one after the other until the view or the login ends.
// done(binary, old): for each that svcd keeps. old: the one whose name the file has, if it is another.
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
  const drop = (event) => {
    hover(false)(event);
    take(event.dataTransfer.files);
  };
  const choose = ({ target }) => {
    take(target.files);
    target.value = "";
  };
  const limit = most > 0 && most < Infinity && `, at most ${bytes(most)} each`;
  return html`
    <div class=${`drop ${over ? "over" : ""}`} onDragOver=${hover(true)} onDragLeave=${hover(false)} onDrop=${drop}>
      <label>Upload <input type="file" multiple onChange=${choose} /></label>${" "}
      <span class="faint">or drop files here${limit}</span>
      ${most > 0 && html`<ul class="uploads">${files.map(({ file, key }) => html`
        <${Upload} key=${key} file=${file} most=${most} turn=${turn} signal=${signal} done=${done} />`)}
      </ul>`}
    </div>`;
}

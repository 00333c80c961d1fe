// The keys of all views: one list, which is obeyed and shown.
import { useEffect, useState } from "./hooks.js";
import { html } from "./html.js";
import { Find } from "./find.js";
import { Check, Dialog, Values } from "./parts.js";

const MAC = /^(Mac|iP)/.test(navigator.platform);
const FIND = MAC ? "⌘ K" : "Ctrl K";
const KEYS = [
  [FIND, "Find a cluster, a job, a run or a view"],
  ["/", "Search in this view"],
  ["?", "Show the keys"],
  ["Enter", "Open what is chosen"],
  ["Esc", "Close what is open"],
];
const OFF = "svcd keys"; // those of one sign are switched off in this tab

// The key of the list that an event is; "" for none. Single ones are for those who do not type.
export function keyOf({ key, ctrlKey, metaKey, altKey, shiftKey }, isTyping) {
  if (altKey || ctrlKey || metaKey) return key === "k" && !altKey && !shiftKey && (MAC ? metaKey : ctrlKey) ? FIND : "";
  return isTyping ? "" : key;
}

function KeyList({ close }) {
  const change = (on) => sessionStorage.setItem(OFF, on ? "" : "1");
  return html`<${Dialog} onClose=${close} aria-labelledby="keys">
    <h2 id="keys">Keys</h2>
    <${Values} rows=${KEYS.map(([key, does]) => [does, html`<kbd>${key}</kbd>`])} />
    <${Check} text="Use the keys / and ?" on=${!sessionStorage.getItem(OFF)} change=${change} />
    <div class="buttons"><button type="button" autofocus onClick=${close}>Close</button></div>
  <//>`;
}

// The button that finds, and what the keys open.
export function Keys() {
  const [shown, show] = useState("");
  useEffect(() => {
    const acts = {
      [FIND]: () => show(FIND),
      "/": () => {
        const field = [...document.querySelectorAll('main [type="search"]')].find((each) => each.checkVisibility());
        if (!field) return show(FIND);
        field.focus();
        field.select();
      },
      "?": () => show("?"),
    };
    const press = (event) => {
      const key = keyOf(event, event.target.matches?.("input, select, textarea"));
      if (!acts[key] || (key !== FIND && sessionStorage.getItem(OFF))) return;
      event.preventDefault();
      if (!document.querySelector("dialog[open]")) acts[key]();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
  const close = (own) => () => show((now) => (now === own ? "" : now)); // a key may have opened another one meanwhile
  return html`
    <button type="button" class="small" onClick=${() => show(FIND)}>Find <kbd class="wide">${FIND}</kbd></button>
    ${shown === FIND && html`<${Find} close=${close(FIND)} more=${() => show("?")} />`}
    ${shown === "?" && html`<${KeyList} close=${close("?")} />`}`;
}

// A question before an action.
import { useRef, useState } from "./hooks.js";
import { html } from "./html.js";
import { newKey, nextKey, refusalOf } from "./api.js";
import { useAction } from "./forms.js";
import { Command, Dialog, Lines, Problem } from "./parts.js";
import { plain } from "./text.js";

// confirm: the name that the user types, "" for none.
// act(key): sends the request; a key belongs to one question, so that two presses act once.
export function Question({ title, verb, danger, confirm = "", command, act, close, ready = true, children }) {
  const key = useRef(newKey());
  const [typed, type] = useState("");
  const { busy, faults, press } = useAction();
  const refuse = (error) => {
    key.current = nextKey(key.current, error);
    return [error.message];
  };
  const asked = confirm && typed !== confirm;
  return html`<${Dialog} onClose=${close} aria-labelledby="question">
    <form onSubmit=${press(() => act(key.current), close, refuse)}>
      <h2 id="question">${title}</h2>
      ${children}
      ${confirm && html`
        <label class="field">
          <span>Type <bdi>${plain(confirm)}</bdi> to confirm</span>
          <input value=${typed} onInput=${(e) => type(e.target.value)}
            autocomplete="off" spellcheck=${false} autofocus />
        </label>`}
      ${faults[0] && html`<${Problem} title=${refusalOf(faults[0])}><${Lines} text=${faults[0]} /><//>`}
      <div class="buttons">
        <${Command} text=${command} />
        <button type="button" onClick=${close}>Keep things as they are</button>
        <button type="submit" class=${danger ? "danger" : "primary"} disabled=${Boolean(asked) || busy || !ready}>
          ${busy ? "Sending…" : verb}
        </button>
      </div>
    </form>
  <//>`;
}

// Templates: html`<p>${text}</p>` makes what Preact draws. Values are always text, never markup.
import { h } from "./preact.js";
import htm from "./htm.js";

export const html = htm.bind(h);

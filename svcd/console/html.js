// Templates: html`<p>${text}</p>` makes what Preact draws. Values are always text, never markup.
import { h } from "./preact.js";
import htm from "./htm.js";

export const html = htm.bind(h);

// A way to draw rows of records that draws a record again only when it, or `also`, is another one.
export function drawnOnce(draw) {
  const known = new WeakMap();
  return (record, also) => {
    const found = known.get(record);
    if (found && found.also === also) return found.row;
    const row = draw(record);
    known.set(record, { also, row });
    return row;
  };
}

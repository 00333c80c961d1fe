// The lines of a log in a box that scrolls. Only those in view, and some around them, are drawn.
import { useEffect, useMemo, useRef, useState } from "./hooks.js";
import { html } from "./html.js";
import { GAP, lineAt, LONGEST, rowsAbove } from "./log_text.js";
import { here } from "./route.js";
import { plain } from "./text.js";

const ROW = 20; // pixels, as in style.css
const STEP = 50; // rows that scroll before others are drawn
const DRAWN = 250; // rows

function textOf(line, pattern) {
  const rest = line.length > LONGEST && ` … (${line.length} characters)`;
  const pieces = pattern ? line.slice(0, LONGEST).split(pattern) : [line.slice(0, LONGEST)];
  return [...pieces.map((piece, at) => (at % 2 ? html`<mark>${plain(piece)}</mark>` : plain(piece))), rest];
}

const Line = ({ line, number, href, isMarked, pattern }) => html`
  <span class="line ${line.startsWith(GAP) ? "gap" : ""}" aria-current=${isMarked ? "true" : undefined}>
    <a class="no" href=${href} tabindex=${isMarked ? 0 : -1} aria-label="Line ${number}">${number}</a>
    <span>${textOf(line, pattern)}${"\n"}</span>
  </span>`;

// lines: of which the first has the number `first`. marked: the index of a line, which is shown when it or `shown`
// changes; -1 for none. setFollowing: called with whether the end is in view.
export function LogLines({ lines, first, marked, shown, pattern, wrap, following, setFollowing }) {
  const box = useRef(null);
  const due = useRef(false); // the marked line is to be brought into view once it is drawn
  const [row, setRow] = useState(0);
  const [columns, setColumns] = useState(80);
  const above = useMemo(() => rowsAbove(lines, wrap ? columns : 0), [lines, wrap, columns]);
  const start = lineAt(above, row - STEP);
  const end = Math.min(lines.length, lineAt(above, row + DRAWN - STEP) + 1);
  const measure = () => { // a number is six characters wide
    const number = box.current.querySelector(".no");
    if (number) setColumns(Math.floor(number.nextElementSibling.clientWidth / (number.offsetWidth / 6)));
  };
  const scrolled = () => {
    const { scrollTop, scrollHeight, clientHeight } = box.current;
    setRow(Math.floor(scrollTop / ROW / STEP) * STEP);
    setFollowing(scrollHeight - scrollTop - clientHeight < 40);
  };
  useEffect(() => {
    measure();
    addEventListener("resize", measure);
    return () => removeEventListener("resize", measure);
  });
  useEffect(() => {
    if (following) box.current.scrollTop = box.current.scrollHeight;
  }, [above, following]);
  useEffect(() => {
    if (marked < 0) return;
    due.current = true;
    const { scrollTop, clientHeight } = box.current;
    const top = above[marked] * ROW;
    if (top < scrollTop || top + ROW > scrollTop + clientHeight) box.current.scrollTop = top - clientHeight / 3;
  }, [marked < 0 ? -1 : first + marked, shown, wrap, columns]);
  useEffect(() => {
    const line = due.current && box.current.querySelector("[aria-current]");
    if (!line) return;
    due.current = false;
    (line.querySelector("mark") ?? line).scrollIntoView({ block: "nearest", inline: "nearest" });
  });
  const drawn = useMemo(() => {
    return lines.slice(start, end).map((line, at) => {
      const number = first + start + at;
      const href = here({ line: number });
      const isMarked = start + at === marked;
      return html`<${Line} key=${number} ...${{ line, number, href, isMarked, pattern }} />`;
    });
  }, [lines, start, end, marked, pattern]);
  const space = { paddingTop: `${above[start] * ROW}px`, paddingBottom: `${(above.at(-1) - above[end]) * ROW}px` };
  return html`
    <pre class="log ${wrap ? "wrap" : ""}" ref=${box} tabindex="0" aria-label="Log" dir="ltr" onScroll=${scrolled}>
      <span class="rows" style=${space}>${drawn}</span></pre>`;
}

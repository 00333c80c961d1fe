// The lines of a log as the page keeps and draws them. Pure.
import { withoutColours } from "./text.js";

const KEPT = 4_000_000; // characters; the oldest lines go
export const LONGEST = 2000; // characters of a line that are drawn
const ERROR = /ERROR|FATAL|Exception|Error\b|Traceback|\berror: /;
export const GAP = "[svcd: "; // the beginning of lines of svcd

// first: the number of the first line that is kept. The last line has no end yet; it may be empty.
export const NO_LINES = { lines: [""], first: 1, size: 0 };

export function longer({ lines, first, size }, coloured) {
  const text = withoutColours(coloured);
  const [end, ...more] = text.split("\n");
  const all = lines.slice(0, -1).concat(lines.at(-1) + end, more);
  let kept = size + text.length;
  let gone = 0;
  while (kept > KEPT && gone < all.length - 1) kept -= all[gone++].length + 1;
  return { lines: gone ? all.slice(gone) : all, first: first + gone, size: kept };
}

const CLOSING = "==> job execution "; // the beginning of what svcd appends after the end

// Whether no program has written a line.
export const isSilent = ([line = CLOSING]) => line.startsWith(CLOSING);

// What finds the text in any case; null for "".
export const patternOf = (text) => (text ? new RegExp(`(${text.replace(/[^\w\s]/g, "\\$&")})`, "i") : null);

// The indexes of the lines that have the text.
export function linesWith(lines, pattern) {
  const at = [];
  if (pattern) lines.forEach((line, index) => pattern.test(line) && at.push(index));
  return at;
}

// The first line that the reason of a failure quotes, else that looks like an error, else -1.
export function firstError(lines, reason) {
  for (const text of reason.split("\n").map((line) => line.trim())) {
    const at = lines.findIndex((line) => line.includes(text));
    if (text.length > 9 && at >= 0) return at; // a short text may be in any line
  }
  return lines.findIndex((line) => ERROR.test(line));
}

// For each line the number of rows above it, and at the end that of all rows. columns: of a row, 0 without wrapping.
export function rowsAbove(lines, columns) {
  const above = new Float64Array(lines.length + 1);
  lines.forEach(({ length }, at) => {
    above[at + 1] = above[at] + (columns ? Math.ceil(Math.min(length, LONGEST) / columns) || 1 : 1);
  });
  return above;
}

// The line that has this row.
export const lineAt = (above, row) => Math.max(0, above.findLastIndex((rows) => rows <= row));

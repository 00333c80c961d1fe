// Texts of others: shown as they are, never run. Pure.

const INVISIBLE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;

// A text without characters that act: escape codes and changes of direction become visible signs.
export function plain(value) {
  return String(value ?? "").replace(INVISIBLE, (sign) => {
    const code = sign.charCodeAt(0);
    if (code < 0x20) return code === 13 ? "" : String.fromCharCode(0x2400 + code);
    return `\u27e8U+${code.toString(16).toUpperCase().padStart(4, "0")}\u27e9`;
  });
}

// The text without the colours that programs write for terminals; for logs.
export function withoutColours(value) {
  return String(value).replace(/\u001b\[[0-9;]*m/g, "");
}

// The address, if a browser may open it as a page; else null.
export function pageAddress(value) {
  try {
    const url = new URL(String(value));
    return url.protocol === "http:" || url.protocol === "https:" ? url.href : null;
  } catch {
    return null;
  }
}

// A word for a shell.
export function quoted(value) {
  const word = plain(value);
  return /^[A-Za-z0-9_.\/:=@%+-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

// A text of lines with one more.
export const withLine = (text, line) => text.replace(/\n?$/, text && "\n") + line;

export const count = (n, one, many = `${one}s`) => `${n} ${n === 1 ? one : many}`;

// The first line of a text.
export const firstLine = (value) => String(value ?? "").split("\n", 1)[0];

// A number of bytes for people.
export function bytes(n) {
  if (n < 1024) return `${n} bytes`;
  const at = Math.min(3, Math.floor(Math.log2(n) / 10));
  return `${Number((n / 1024 ** at).toFixed(1))} ${["", "K", "M", "G"][at]}iB`;
}

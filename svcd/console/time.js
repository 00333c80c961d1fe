// Times: of the daemon, whose clock decides. A browser's clock may differ by hours.

let ahead = 0; // milliseconds by which the clock of the daemon is ahead

// Take the daemon's time from the header Date, which has whole seconds.
export function learn(date) {
  const sent = Date.parse(date ?? "");
  if (Number.isNaN(sent)) return;
  const found = sent + 500 - Date.now();
  if (Math.abs(found - ahead) > 1500) ahead = found;
}

// The daemon's time now, in milliseconds.
export const now = () => Date.now() + ahead;

// "2026-01-01 00:00:05.078125", "2026-01-01T00:00:05" (both UTC) or null -> milliseconds or null.
export function moment(stamp) {
  if (!stamp) return null;
  const text = String(stamp).replace(" ", "T").replace(/(\.\d{3})\d+/, "$1");
  const found = Date.parse(/Z|[+-]\d\d:\d\d$/.test(text) ? text : `${text}Z`);
  return Number.isNaN(found) ? null : found;
}

const two = (large, name, small, other) => (small ? `${large} ${name} ${small} ${other}` : `${large} ${name}`);

// A length of time for people. It is never negative.
export function duration(ms) {
  const s = Math.max(0, ms) / 1000;
  if (s < 10) return `${s.toFixed(1)} s`;
  if (s < 60) return `${Math.round(s)} s`;
  const whole = Math.round(s);
  if (whole < 3600) return two(Math.floor(whole / 60), "min", whole % 60, "s");
  const minutes = Math.round(s / 60);
  if (minutes < 1440) return two(Math.floor(minutes / 60), "h", minutes % 60, "min");
  const hours = Math.round(s / 3600);
  return two(Math.floor(hours / 24), "d", hours % 24, "h");
}

const UNITS = [[86400, "d"], [3600, "h"], [60, "min"]];

// One unit is enough.
function span(ms) {
  const s = Math.max(0, ms) / 1000;
  const [size, unit] = UNITS.find(([least]) => s >= least) ?? [1, "s"];
  return `${Math.floor(s / size)} ${unit}`;
}

export const ago = (ms) => (now() - ms < 10_000 ? "just now" : `${span(now() - ms)} ago`);
export const left = (ms) => (ms - now() < 60_000 ? "soon" : `in ${span(ms - now())}`);

// The whole time, in the zone of the browser.
const FULL = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" }); // making one takes long
const CLOCK = new Intl.DateTimeFormat(undefined, { timeStyle: "medium", hour12: false });
export const full = (ms) => FULL.format(ms);
export const clock = (ms) => CLOCK.format(ms);

// The address holds the view and its filters: #/clusters/ID?change=2. So reload and back work.
import { useEffect, useState } from "./hooks.js";

export const VIEWS = [
  ["", "Home"],
  ["clusters", "Clusters"],
  ["runs", "Runs"],
  ["jobs", "Jobs"],
  ["events", "Events"],
  ["images", "Images"],
];

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function current() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return { parts: path.split("/").filter(Boolean).map(decoded), query: Object.fromEntries(new URLSearchParams(query)) };
}

// The address of a view. Empty filters are left out.
export function to(parts, query = {}) {
  const given = new URLSearchParams(Object.entries(query).filter(([, value]) => value));
  const end = given.size ? `?${given}` : "";
  return `#/${parts.map(encodeURIComponent).join("/")}${end}`;
}

// The address of this view with other filters.
export function here(changes) {
  const { parts, query } = current();
  return to(parts, { ...query, ...changes });
}

// Change filters of this view. A typed text makes no step for the back button.
export function filter(changes, step = false) {
  const address = here(changes);
  if (step) location.hash = address;
  else {
    history.replaceState(null, "", address);
    dispatchEvent(new HashChangeEvent("hashchange"));
  }
}

export function useRoute() {
  const [route, set] = useState(current);
  useEffect(() => {
    const changed = () => set(current());
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return route;
}

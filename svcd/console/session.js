// Who is logged in. A token lives in this tab only, and is sent in a header only.

const KEPT = "svcd";
const state = { auth: "none", project: "", token: "", until: null, ...JSON.parse(sessionStorage.getItem(KEPT) ?? "{}") };

export const session = state;

export function begin({ auth, project }) {
  state.auth = auth;
  state.project = state.project || project;
}

export const isOpen = () => Boolean(state.project && (state.auth === "none" || state.token));

export function login({ project, token = "", until = null }) {
  Object.assign(state, { project, token, until });
  sessionStorage.setItem(KEPT, JSON.stringify({ project, token, until }));
}

export function logout() {
  Object.assign(state, { token: "", until: null });
  if (state.auth !== "none") state.project = "";
  sessionStorage.removeItem(KEPT);
}

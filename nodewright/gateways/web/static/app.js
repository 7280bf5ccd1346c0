// The frame: login, the stream of changes, and which view is shown.
import {fill, h} from "./dom.js";
import {accountsView} from "./accounts.js";
import {autoscalerView} from "./autoscaler.js";
import {deletionsView} from "./deletions.js";
import {fleetView} from "./fleet.js";
import {objectView} from "./object.js";
import {machineView} from "./machine.js";
import {planView} from "./plan.js";
import {rolloutsView} from "./rollouts.js";
import {runbookView} from "./runbook.js";
import {sizesView} from "./sizes.js";

const VIEWS = [
  {path: "fleet", title: "Fleet", make: fleetView},
  {path: "rollouts", title: "Rollouts", make: rolloutsView},
  {path: "deletions", title: "Deletions", make: deletionsView},
  {path: "sizes", title: "Sizes", make: sizesView},
  {path: "autoscaler", title: "Autoscaler", make: autoscalerView},
  {path: "accounts", title: "Accounts", make: accountsView},
  {path: "plan", title: "Plan", make: planView},
];
const MORE = {machine: {title: "Machine", make: machineView}, object: {title: "Object", make: objectView}, runbook: {title: "Runbook", make: runbookView}};
const root = document.getElementById("app");
const store = {fleet: null, problems: null, session: null, live: false};
let shown = null;

class Refused extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

/** Ask for JSON; an error has the words of the server. */
export async function ask(path, options = {}) {
  const response = await fetch(path, {cache: "no-store", ...options});
  const value = await response.json().catch(() => ({error: `the server answered ${response.status}`}));
  if (response.status === 401 && store.session) start();
  if (!response.ok) throw new Refused(value.error ?? `the server answered ${response.status}`, response.status);
  return value;
}

export const post = (path, value) =>
  ask(path, {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(value)});

function theme(next) {
  const wanted = next ?? localStorage.getItem("theme") ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  document.documentElement.dataset.theme = wanted;
  if (next) localStorage.setItem("theme", next);
}

async function start() {
  theme();
  const token = /^#token=([\w-]+)$/.exec(location.hash)?.[1];
  if (token) {
    history.replaceState(null, "", "/");
    try {
      await post("/login", {token});
    } catch (error) {
      return login(error.message);
    }
  }
  try {
    store.session = await ask("/api/session");
  } catch (error) {
    return login(error.status === 401 ? "" : error.message);
  }
  frame();
  stream();
  route();
}

function login(problem) {
  store.session = null;
  const message = h("p", {class: problem ? "error" : "muted", role: problem ? "alert" : null},
    problem || "Open the link that `nodewright up` or `nodewright ui` printed, or log in with a token of the cluster.");
  const token = h("input", {class: "field", name: "token", type: "password", autocomplete: "off", required: true});
  const namespace = h("input", {class: "field", name: "namespace", autocomplete: "off", placeholder: "all namespaces"});
  const send = async (event) => {
    event.preventDefault();
    try {
      await post("/login", {token: token.value, namespace: namespace.value});
      start();
    } catch (error) {
      fill(message, error.message);
      message.className = "error";
      message.setAttribute("role", "alert");
    }
  };
  fill(root, h("main", {class: "login", id: "main"}, h("form", {class: "panel", onsubmit: send},
    h("div", {class: "brand"}, h("img", {src: "/static/icon.svg", alt: ""}), h("h1", null, "Nodewright")), message,
    h("label", null, "Token", token), h("label", null, "Namespace", namespace),
    h("button", {class: "button main-action"}, "Log in"),
    h("p", {class: "muted"}, "In a cluster: ", h("code", null, "kubectl create token NAME"), " prints one. You see what it may see."))));
  token.focus();
}

let nav, main, live;

function frame() {
  nav = h("nav", {class: "nav", "aria-label": "Views"});
  main = h("main", {class: "main", id: "main", tabindex: "-1"});
  live = h("span", {class: "live lost", role: "status"}, "connecting");
  const dark = () => document.documentElement.dataset.theme === "dark";
  const toggle = h("button", {class: "button small", onclick: () => {
    theme(dark() ? "light" : "dark");
    fill(toggle, dark() ? "Light" : "Dark");
  }}, dark() ? "Light" : "Dark");
  const logout = h("button", {class: "button small", onclick: async () => {
    await post("/logout", {});
    location.reload();
  }}, "Log out");
  fill(root, h("div", {class: "frame"},
    h("div", {class: "side"},
      h("div", {class: "brand"}, h("img", {src: "/static/icon.svg", alt: ""}), "Nodewright"), nav,
      h("div", {class: "side-foot"}, live,
        h("span", {class: "where"}, store.session.server, store.session.namespace ? ` · ${store.session.namespace}` : ""),
        h("span", {class: "tools"}, toggle, store.session.ownTokens ? logout : null))),
    main));
}

function drawNav(path) {
  const wrong = store.problems?.problems?.length ?? 0;
  const going = (store.fleet?.cells ?? []).filter((cell) => cell[5] === "going").reduce((sum, cell) => sum + cell[6], 0);
  const badges = {fleet: wrong ? h("span", {class: "badge bad", title: "problems"}, wrong) : null,
    deletions: going ? h("span", {class: "badge going", title: "Machines that are going"}, going) : null};
  const views = VIEWS.filter((view) => view.path === "fleet" || store.session.views.includes(view.path));
  fill(nav, views.map((view) => h("a", {href: `#/${view.path}`, "data-key": view.path,
    "aria-current": view.path === path ? "page" : null}, view.title, badges[view.path])));
}

function route() {
  const [path, ...rest] = location.hash.replace(/^#\//, "").split("/").map(decodeURIComponent);
  const view = VIEWS.find((each) => each.path === path) ?? MORE[path] ?? VIEWS[0];
  const body = h("div", {class: "stack"});
  const heading = h("h1", {tabindex: "-1"}, view.title);
  fill(main, h("div", {class: "head"}, heading), body);
  document.title = `${view.title} · Nodewright`;
  drawNav(view.path ?? "");
  shown?.end?.();
  shown = {path: view.path ?? "", ...view.make({body, heading, store, parts: rest, ask, post})};
  shown.draw?.();
  if (document.activeElement && document.activeElement !== document.body) heading.focus({preventScroll: true});
  scrollTo(0, 0);
}

function stream() {
  const source = new EventSource("/api/events");
  const hear = (name, take) => source.addEventListener(name, (event) => take(JSON.parse(event.data)));
  const told = (kinds) => {
    drawNav(shown.path);
    shown.changed?.(kinds);
  };
  source.addEventListener("open", () => {
    live.className = "live";
    fill(live, "live");
  });
  hear("fleet", (value) => {
    store.fleet = value;
    shown?.fleet?.();
    if (shown) drawNav(shown.path);
  });
  hear("problems", (value) => {
    store.problems = value;
    told(["Problems"]);
  });
  hear("changed", (value) => told(value.kinds));
  source.addEventListener("error", () => {
    live.className = "live lost";
    fill(live, "reconnecting");
    if (source.readyState === EventSource.CLOSED) {
      setTimeout(() => ask("/api/session").then(stream, () => setTimeout(stream, 3000)), 2000);
    }
  });
}

addEventListener("hashchange", () => (store.session ? route() : start()));
start();

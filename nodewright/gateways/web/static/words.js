// Times, counts and states as people read them.
import {h} from "./dom.js";

export const STATES = ["Ready", "coming up", "not Ready", "going", "failed"];
const CLASSES = {"Ready": "ready", "coming up": "coming", "not Ready": "notready", "going": "leaving", "failed": "failed"};
const MOODS = {ok: "ready", busy: "coming", wrong: "failed", paused: "notready"};
const MOOD_WORDS = {ok: "fine", busy: "on its way", wrong: "wrong", paused: "paused"};

export const classOf = (state) => CLASSES[state] ?? "plain";
export const moodClass = (mood) => MOODS[mood] ?? "plain";
export const moodWord = (mood) => MOOD_WORDS[mood] ?? "";
export const number = (value) => Number(value).toLocaleString("en-US");
export const counted = (count, one, many = `${one}s`) => `${number(count)} ${count === 1 ? one : many}`;

/** Milliseconds → "3 s", "5 min", "2 h 10 min", "4 d". */
export function lasting(milliseconds) {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  if (seconds < 100) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 100) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  return `${Math.round(hours / 24)} d`;
}

/** The age of a moment as an element that says the moment itself to who points at it. */
export function ago(moment, before = "", after = "") {
  const at = Date.parse(moment);
  if (Number.isNaN(at)) return null;
  const distance = Date.now() - at;
  return h("time", {datetime: moment, title: moment}, `${before}${lasting(Math.abs(distance))}${after}`);
}

export function clock(moment) {
  const at = new Date(moment);
  return Number.isNaN(at.getTime()) ? "" : at.toLocaleTimeString("en-GB");
}

export function stateTag(state) {
  return h("span", {class: `state ${classOf(state)}`}, h("i", {class: "dot"}), state);
}

/** counts: {state: number}; a bar with each state's share. */
export function shares(counts, classes = "bar") {
  const total = Object.values(counts).reduce((sum, each) => sum + each, 0);
  const shown = STATES.filter((state) => counts[state]);
  const label = shown.map((state) => `${counts[state]} ${state}`).join(", ") || "none";
  return h("div", {class: classes, role: "img", "aria-label": label},
    shown.map((state) => h("i", {class: `grow ${classOf(state)}`, css: {width: `${(counts[state] / total) * 100}%`}})));
}

export const objectHref = (kind, namespace, name) =>
  kind === "Machine"
    ? `#/machine/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`
    : `#/object/${encodeURIComponent(kind)}/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;

const SHOWN = new Set(["Cluster", "ControlPlane", "MachineDeployment", "MachineSet", "Machine", "MachineHealthCheck"]);

/** "Kind/name" as a link where there is a page of it. */
export function objectLink(title, namespace) {
  const slash = title.indexOf("/");
  const kind = title.slice(0, slash);
  if (slash < 0 || !SHOWN.has(kind)) return title;
  return h("a", {href: objectHref(kind, namespace, title.slice(slash + 1))}, title);
}

/** A reason, which leads to its runbook where there is one. */
export function reasonTag(reason, classes, runbook, before = "") {
  const heading = (runbook ?? "").split("#")[1];
  if (!heading) return h("span", {class: classes}, before, reason);
  return h("a", {class: classes, href: `#/runbook/${encodeURIComponent(heading)}`, title: "what it means, and what to do"}, before, reason);
}

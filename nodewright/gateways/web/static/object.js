// One object as a tree: what `nodewright describe` shows.
import {asking} from "./asking.js";
import {fill, h, panel} from "./dom.js";
import {ago, moodClass, moodWord, objectLink, reasonTag} from "./words.js";

export function objectView(view) {
  const [kind, namespace, name] = view.parts;
  fill(view.heading, `${kind} ${name}`);
  const query = new URLSearchParams({kind, namespace, name});
  return asking({view, path: () => `/api/describe?${query}`, kinds: ["Cluster", "MachineDeployment", "MachineSet", "Machine", "ControlPlane"], pause: 1000,
    draw: (value) => [panel("State", h("div", {class: "body"}, treeOf([value.object], namespace))), panel("Served by", h("div", {class: "body"}, treeOf(value.servedBy.children ?? [], namespace)))]});
}

export function treeOf(branches, namespace) {
  return h("ul", {class: "tree"}, branches.map((each) => h("li", null,
    h("div", {class: "line"}, each.mood ? h("span", {class: `state ${moodClass(each.mood)}`}, h("i", {class: "dot"}), h("span", {class: "quiet"}, moodWord(each.mood))) : null,
      h("b", null, objectLink(each.name ?? "", namespace)), each.state ? h("span", null, each.state) : null,
      each.reason ? reasonTag(each.reason, `tag ${moodClass(each.mood)}`, each.runbook) : null, each.since ? h("span", {class: "muted"}, ago(each.since, "for ")) : null,
      each.message ? h("span", {class: "muted"}, each.message) : null),
    each.nextStep ? h("div", {class: "step"}, `→ ${each.nextStep}`) : null,
    each.children?.length ? treeOf(each.children, namespace) : null)));
}

// Pods that wait × node groups, with every reason for a no.
import {asking} from "./asking.js";
import {empty, fill, h, panel, table} from "./dom.js";
import {whatIf} from "./whatif.js";
import {counted} from "./words.js";

export function autoscalerView(view) {
  const live = h("div", {class: "stack"});
  const question = whatIf(view);
  fill(view.body, live, question.element);
  return asking({view: {...view, body: live}, path: () => "/api/autoscaler", kinds: ["MachineDeployment", "MachineSet"], draw: (value) => {
    question.groups(value.groups);
    return draw(value);
  }, pause: 4000});
}

function draw(value) {
  return [
    panel("Now", h("div", {class: "body stack"}, answers(value.running.below), value.paused ? h("p", {class: "note"}, `Nothing is decided: ${value.paused}`) : null)),
    panel("Groups", value.groups.length ? table("Groups", [{title: "Group"}, {title: "Machines", num: true}, {title: "Least", num: true}, {title: "Most", num: true}, {title: "Now"}],
      value.groups.map((group) => [group.id, group.replicas, group.min, group.max, group.grows ? h("span", {class: "tag ready"}, `grows by ${group.grows}`) : "stays"]))
      : empty("No group: an annotation gives a MachineDeployment its bounds.")),
    panel("Pods that wait × groups", value.rows.length ? matrix(value) : empty("No pod waits for a Node.")),
    value.staying.length ? panel("Nodes that stay", h("div", null, value.cooldown ? h("p", {class: "note"}, value.cooldown) : null,
      table("Nodes that stay", [{title: "Node"}, {title: "Reason"}, {title: "Why", wrap: true}], value.staying.map((each) => [each.node, each.reason, each.why])))) : null,
  ];
}

/** The table of pods × groups. */
export function matrix(value) {
  const cell = (one) => h("td", {class: one.state}, one.state === "grows" ? h("b", null, "takes it") : one.state === "other" ? h("span", {class: "muted"}, "not needed") : one.why);
  return h("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": "Pods that wait and groups"}, h("table", {class: "matrix"},
    h("caption", {class: "quiet"}, "Which group takes which pod"),
    h("thead", null, h("tr", null, h("th", {scope: "col"}, "Pod"), value.groups.map((group) => h("th", {scope: "col"}, group.id)))),
    h("tbody", null, value.rows.map((row) => h("tr", null, h("th", {scope: "row"}, `${row.namespace}/${row.name}`, row.count > 1 ? h("div", null, `and ${counted(row.count - 1, "pod")} alike`) : null,
      row.changes.length ? h("details", {"data-key": `${row.namespace}/${row.name}`}, h("summary", null, "what would help"), answers(row.changes)) : null), row.cells.map(cell))))));
}

function answers(list) {
  return h("ul", {class: "tree"}, list.map((each) => h("li", null, each.text, each.below.length ? answers(each.below) : null)));
}

// What if: pods that are not there, other largest sizes, and what the autoscaler would do then. Nothing is written.
import {matrix} from "./autoscaler.js";
import {empty, fill, h, panel, table} from "./dom.js";
import {counted} from "./words.js";

const GIVEN = [
  {name: "count", title: "Pods", type: "number", value: "1", min: "0", max: "1000"},
  {name: "cpu", title: "CPU of each", value: "1"},
  {name: "memory", title: "Memory of each", value: "1Gi"},
  {name: "gpu", title: "GPUs of each", type: "number", value: "0", min: "0", max: "1000"},
  {name: "gpuResource", title: "Resource of the GPUs", value: "nvidia.com/gpu"},
  {name: "namespace", title: "Namespace", value: "default"},
];
const LINES = [
  {name: "nodeSelector", title: "Node selector", hint: "KEY=VALUE, one a line"},
  {name: "tolerations", title: "Tolerations", hint: "KEY[=VALUE][:EFFECT], one a line; * for all"},
];
const NUMBERS = ["count", "gpu"];

/** {element, groups(list): the groups whose largest size may be changed}. */
export function whatIf(view) {
  const fields = new Map();
  const keep = (name, field) => {
    fields.set(name, field);
    return field;
  };
  const sizes = h("div", {class: "asked"}), out = h("div", {class: "stack", "aria-live": "polite"});
  const most = new Map();
  const run = h("button", {class: "button main-action", type: "submit"}, "What if");
  const form = h("form", {class: "body stack", "aria-label": "What if", onsubmit: async (event) => {
    event.preventDefault();
    run.disabled = true;
    fill(out, empty("Working it out…"));
    try {
      fill(out, draw(await view.post("/api/whatif", asked(fields, most))));
    } catch (error) {
      fill(out, h("p", {class: "error", role: "alert"}, error.message));
    }
    run.disabled = false;
  }},
    h("div", {class: "asked"}, GIVEN.map(({name, title, type, value, min, max}) =>
      h("label", null, title, keep(name, h("input", {class: "field", type: type ?? "text", value, min, max, autocomplete: "off"}))))),
    h("div", {class: "asked"}, LINES.map(({name, title, hint}) =>
      h("label", null, title, keep(name, h("textarea", {class: "field few", placeholder: hint, spellcheck: "false", rows: "2"}))))),
    h("details", null, h("summary", null, "Other largest sizes"), sizes),
    h("div", {class: "choose"}, run, h("span", {class: "muted"}, "Decided on a copy of what you see: nothing is written.")));
  return {
    element: h("div", {class: "stack"}, panel("What if", form), out),
    groups: (list) => {
      if (list.length === most.size && list.every((group) => most.has(group.id))) return;
      const typed = new Map([...most].map(([id, field]) => [id, field.value]));
      most.clear();
      for (const group of list) most.set(group.id, h("input", {class: "field", type: "number", min: String(group.min), max: "100000", placeholder: String(group.max), value: typed.get(group.id) ?? null}));
      fill(sizes, list.length ? list.map((group) => h("label", null, group.id, most.get(group.id))) : empty("No group."));
    },
  };
}

function asked(fields, most) {
  const body = {sizes: {}};
  for (const [name, field] of fields) body[name] = NUMBERS.includes(name) ? Number(field.value || "0") : field.value;
  for (const [id, field] of most) if (field.value !== "") body.sizes[id] = Number(field.value);
  return body;
}

function draw(value) {
  const {pods, onNew, onOld, left} = value.asked;
  const grow = value.groups.filter((group) => group.grows);
  return [
    panel("Then", h("div", {class: "body stack"},
      value.paused ? h("p", {class: "note"}, `Nothing is decided: ${value.paused}`) : null,
      h("p", null, pods ? `Of ${counted(pods, "pod")} ${onOld} fit on Nodes that are there or come already, ${onNew} on new Nodes, ${left} on none.` : "No pod was added."),
      grow.length ? table("Groups that would grow", [{title: "Group"}, {title: "Machines", num: true}, {title: "Most", num: true}, {title: "Then"}],
        grow.map((group) => [group.id, group.replicas, group.max, h("span", {class: "tag ready"}, `grows by ${group.grows}`)]))
        : empty("No group would grow."))),
    value.rows.length ? panel("Pods × groups then", matrix(value)) : null,
  ];
}

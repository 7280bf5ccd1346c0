// Plan before apply: what the controllers would do, as a picture from owners down to hosts. Nothing is written.
import {empty, fill, h, panel} from "./dom.js";
import {counted, objectLink} from "./words.js";

const ORDER = ["Cluster", "ControlPlane", "MachineDeployment", "MachineSet", "Machine", "MachineHealthCheck", "MachineClass"];
const MOST = 60;

export function planView(view) {
  const text = h("textarea", {class: "field", "aria-label": "Manifests", spellcheck: "false", placeholder: "Paste manifests (YAML), or leave it empty: what happens next anyway"});
  const out = h("div", {class: "stack", "aria-live": "polite"});
  const file = h("input", {type: "file", accept: ".yaml,.yml,.json", "aria-label": "Read manifests from a file", onchange: async () => {
    if (file.files[0]) text.value = await file.files[0].text();
  }});
  const run = h("button", {class: "button main-action", onclick: async () => {
    run.disabled = true;
    fill(out, empty("Working it out…"));
    try {
      fill(out, draw(await view.post("/api/plan", {manifests: text.value})));
    } catch (error) {
      fill(out, h("p", {class: "error", role: "alert"}, error.message));
    }
    run.disabled = false;
  }}, "Plan");
  fill(view.body, panel("If these were applied", h("div", {class: "body stack"}, text, h("div", {class: "choose"}, run, file,
    h("span", {class: "muted"}, "A dry run on a copy of what you see: nothing is written, no provider is asked.")))), out);
  return {};
}

function draw(value) {
  if (!value.objects.length) return panel("Plan", empty("Nothing to do: everything is as it is declared."));
  const kinds = new Map();
  for (const each of value.objects) {
    if (!kinds.has(each.kind)) kinds.set(each.kind, []);
    kinds.get(each.kind).push(each);
  }
  const columns = [...kinds].sort(([a], [b]) => ORDER.indexOf(a) - ORDER.indexOf(b));
  const tally = {};
  for (const each of value.objects) for (const deed of each.actions) if (!deed.quiet) tally[verb(deed)] = (tally[verb(deed)] ?? 0) + 1;
  return [
    h("div", {class: "panel"}, h("div", {class: "totals"}, Object.entries(tally).map(([word, count]) => h("div", {class: "total"}, h("b", null, count), h("span", null, h("i", {class: `dot ${look(word)}`}), word))))),
    h("div", {class: "flow"}, columns.map(([kind, objects]) => h("section", {class: "column"}, h("h2", null, `${kind} · ${objects.length}`), objects.slice(0, MOST).map(object),
      objects.length > MOST ? empty(`and ${counted(objects.length - MOST, "more")}`) : null))),
  ];
}

const verb = (deed) => deed.what.split(" ", 1)[0];
const look = (word) => ({create: "ready", delete: "leaving", scale: "coming", update: "coming", change: "coming", patch: "coming", drain: "notready", evict: "notready"})[word] ?? "plain";
const sign = (word) => ({create: "+", delete: "−"})[word] ?? "~";

function object(each) {
  const deeds = each.actions.filter((deed) => !deed.quiet);
  return h("div", {class: "stack", css: {gap: "5px"}}, h("h3", null, objectLink(`${each.kind}/${each.name}`, each.namespace)),
    each.trouble ? h("p", {class: "note"}, `now: ${each.trouble.reason}: ${each.trouble.message}`) : null,
    deeds.map((deed) => h("div", {class: `deed ${look(verb(deed))}`}, h("span", {class: "sign", "aria-hidden": "true"}, sign(verb(deed))), h("span", null, deed.what), h("span", {class: "why"}, deed.why))),
    each.waitsFor ? h("p", {class: each.outcome === "Failed" ? "error" : "muted"}, each.outcome === "Failed" ? `can't go on: ${each.waitsFor}` : `then waits: ${each.waitsFor}`) : null,
    each.course?.stages?.length ? h("ol", null, each.course.stages.map((stage) => h("li", null, stage.what))) : null);
}

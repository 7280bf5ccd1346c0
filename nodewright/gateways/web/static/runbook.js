// What a reason means and what to do about it: its heading of docs/runbooks.md.
import {empty, fill, h, panel} from "./dom.js";

let entries = null;

export function runbookView(view) {
  const [name] = view.parts;
  fill(view.heading, "Runbook");
  fill(view.body, empty("Reading…"));
  const read = entries ? Promise.resolve(entries) : view.ask("/static/runbooks.json");
  read.then((found) => {
    entries = found;
    fill(view.body, draw(Object.hasOwn(entries, name) ? entries[name] : null, name));
  }, (error) => fill(view.body, h("p", {class: "error", role: "alert"}, error.message)));
  return {};
}

function draw(entry, name) {
  if (!entry) return panel(name, empty("Nobody has to do anything about this reason."));
  return panel(entry.title, h("div", {class: "body stack"},
    entry.meaning ? h("p", null, entry.meaning) : null,
    h("p", null, h("b", null, "Do: "), entry.do),
    h("pre", {tabindex: "0", "aria-label": "Commands that show it"}, entry.look.join("\n")),
    h("p", {class: "muted"}, `More: ${entry.page} and docs/runbooks.md#${name}`)));
}

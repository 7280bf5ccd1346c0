// The deletion board: what holds which Machines, since when and until when.
import {asking} from "./asking.js";
import {empty, h, panel, table} from "./dom.js";
import {ago, counted, objectHref, reasonTag} from "./words.js";

export function deletionsView(view) {
  return asking({view, path: () => "/api/deletions", kinds: ["Machine"], draw});
}

function draw(value) {
  if (!value.total) return panel("Deletions", empty("No Machine is being deleted."));
  return [h("p", {class: "muted"}, `${counted(value.total, "Machine is", "Machines are")} being deleted.`), value.holders.map(holder),
    value.leftOut ? empty(`and ${counted(value.leftOut, "more holder")}`) : null];
}

function holder(each) {
  const rows = each.machines.map((one) => [h("a", {href: objectHref("Machine", each.namespace, one.name)}, one.name), one.node, ago(one.since),
    one.until ? [ago(one.until, "in "), ` ${one.then}`] : "no timeout ends it", one.owner.slice(one.owner.indexOf("/") + 1)]);
  const columns = [{title: "Machine"}, {title: "Node"}, {title: "Since"}, {title: "Until"}, {title: "Of"}];
  return h("section", {class: "panel"},
    h("header", null, h("h2", null, `${each.count} × `, each.holder, h("span", {class: "muted"}, ` ${each.namespace}`)),
      reasonTag(each.reason, `tag ${each.heldUp ? "failed" : "leaving"}`, each.runbook, each.heldUp ? "held up: " : "")),
    h("div", {class: "body stack"}, each.message ? h("p", null, each.message) : null, each.nextStep && each.heldUp ? h("p", {class: "muted"}, `→ ${each.nextStep}`) : null),
    table(`Machines held by ${each.holder}`, columns, rows), each.count > rows.length ? empty(`and ${counted(each.count - rows.length, "more Machine")}`) : null);
}

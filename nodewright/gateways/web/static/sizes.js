// Who changed the size of each group.
import {asking} from "./asking.js";
import {empty, h, panel} from "./dom.js";
import {ago, counted, objectLink} from "./words.js";

export function sizesView(view) {
  return asking({view, path: () => "/api/sizes", kinds: ["MachineDeployment", "MachineSet"], draw, pause: 2000});
}

function draw(value) {
  if (!value.groups.length) return panel("Sizes", empty("There is no MachineDeployment and no MachineSet of its own."));
  return [value.groups.map(group), value.leftOut ? empty(`and ${counted(value.leftOut, "more group")}`) : null];
}

function group(each) {
  const bounds = each.min || each.max ? `autoscaler: ${each.min || "?"} to ${each.max || "?"}` : "no bounds for an autoscaler";
  return h("section", {class: "panel"},
    h("header", null, h("h2", null, objectLink(`${each.kind}/${each.name}`, each.namespace), h("span", {class: "muted"}, ` ${each.namespace}`)),
      h("span", {class: "muted"}, bounds)),
    h("div", {class: "body stack"},
      h("p", null, h("b", null, counted(each.replicas, "Machine")), ` asked for, ${each.machines} there. `,
        each.writers.length ? ["Size last written by ", h("b", null, each.writers[0].manager), ` (${each.writers[0].operation} through ${each.writers[0].through}) `, ago(each.writers[0].at, "", " ago"), "."]
          : "Nobody has written a size: it is the default, or the API server does not say."),
      each.writers.length > 1 ? h("p", {class: "muted"}, "Also own the field: ", each.writers.slice(1).map((one, index) => [index ? ", " : "", one.manager, " ", ago(one.at, "", " ago")])) : null,
      each.events.length ? h("details", {"data-key": `${each.kind}/${each.namespace}/${each.name}`}, h("summary", null, counted(each.events.length, "event")),
        h("ul", null, each.events.map((one) => h("li", null, ago(one.at, "", " ago · "), h("b", null, one.reason), one.count > 1 ? ` ${one.count}×` : "", ` ${one.message}`, h("span", {class: "muted"}, one.from ? ` · ${one.from}` : ""))))) : null));
}

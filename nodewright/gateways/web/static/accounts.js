// Accounts of providers: hosts, what is on its way, and what is refused.
import {asking} from "./asking.js";
import {empty, h, panel} from "./dom.js";
import {counted, reasonTag} from "./words.js";

export function accountsView(view) {
  return asking({view, path: () => "/api/accounts", kinds: ["Machine"], draw, pause: 1500});
}

function draw(value) {
  if (!value.accounts.length) return panel("Accounts", empty("No Machine names an account yet."));
  return [
    value.gauges ? null : h("p", {class: "muted"}, "Circuit breakers and orphan hosts are known to the process that runs the controllers: see them in the view that `nodewright up` serves, or in its metrics."),
    value.accounts.map((each) => account(each, value.gauges)),
  ];
}

function account(each, gauges) {
  const states = Object.entries(each.states);
  return h("section", {class: "panel"},
    h("header", null, h("h2", null, each.scope), h("span", {class: "choose"},
      gauges && each.scope !== "no host yet" ? h("span", {class: `tag ${each.pausing ? "failed" : "ready"}`}, each.pausing ? "breaker open: calls pause" : "breaker closed") : null,
      each.orphans ? h("span", {class: "tag notready"}, counted(each.orphans, "orphan host")) : null)),
    h("div", {class: "totals"}, states.map(([word, count]) => h("div", {class: "total"}, h("b", null, count), h("span", null, word))), states.length ? null : h("p", {class: "muted"}, "no Machine")),
    each.refusals.map((one) => h("div", {class: "problem"}, h("div", {class: "line"}, h("span", {class: "about"}, counted(one.count, "Machine")), reasonTag(one.reason, `tag ${one.limit ? "notready" : "failed"}`, one.runbook),
      h("span", {class: "muted"}, `for example ${one.example}`)), h("span", {class: "why"}, one.message), one.nextStep ? h("span", {class: "step"}, one.nextStep) : null)));
}

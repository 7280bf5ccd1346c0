// Deployments as swim lanes: one lane for each MachineSet, the goal as a mark, budgets and windows below.
import {asking} from "./asking.js";
import {empty, h, panel} from "./dom.js";
import {ago, counted, objectLink} from "./words.js";

const STATE = {done: ["ready", "rolled out"], going: ["coming", "on its way"], paused: ["notready", "paused"], failed: ["failed", "failed"]};

export function rolloutsView(view) {
  return asking({view, path: () => "/api/rollouts", kinds: ["MachineDeployment", "MachineSet"], draw});
}

function draw(value) {
  if (!value.rollouts.length) return panel("Rollouts", empty("There is no MachineDeployment."));
  return [value.rollouts.map(rollout), value.leftOut ? empty(`and ${counted(value.leftOut, "more deployment")}`) : null];
}

function rollout(each) {
  const [kind, word] = STATE[each.state] ?? ["plain", each.state];
  const scale = Math.max(each.replicas + each.limits.surge, ...each.lanes.map((lane) => Math.max(lane.machines, lane.replicas)), 1);
  return h("section", {class: "panel rollout"},
    h("header", null, h("h2", null, objectLink(`MachineDeployment/${each.name}`, each.namespace), h("span", {class: "muted"}, ` ${each.namespace}`)),
      h("span", {class: `tag ${kind}`}, word)),
    h("div", {class: "body stack"},
      h("div", {class: "facts"}, fact(`${each.updated} of ${each.replicas}`, "updated"), fact(each.ready, "ready"), fact(each.available, "available"),
        each.deleting ? fact(each.deleting, "being deleted") : null, fact(each.strategy, "strategy"),
        each.strategy === "RollingUpdate" ? [fact(`+${each.limits.surge}`, `surge (${each.limits.maxSurge})`), fact(`−${each.limits.unavailable}`, `unavailable (${each.limits.maxUnavailable})`)] : null,
        each.inPlace !== "Never" ? fact(each.inPlace, "in place") : null, each.limits.partition ? fact(each.limits.partition, "kept old by partition") : null),
      h("div", null, each.lanes.map((lane, index) => laneOf(lane, index === 0, each, scale))),
      each.budgets.length ? h("div", {class: "windows"}, each.budgets.map(budget)) : null,
      each.conditions.filter((one) => one.message && (each.state !== "done" || one.status !== "True")).map((one) =>
        h("p", {class: "muted"}, h("b", null, `${one.type}: ${one.reason} `), one.message, " ", ago(one.lastTransitionTime, "· for ")))));
}

const fact = (value, word) => h("span", null, h("b", null, value), ` ${word}`);

function laneOf(lane, current, each, scale) {
  const share = (count) => `${(count / scale) * 100}%`;
  const label = `${lane.set}: ${lane.machines} Machines, ${lane.ready} ready, ${lane.replicas} asked for`;
  return h("div", {class: "lane"},
    h("span", {class: "who"}, h("b", null, `Revision ${lane.revision}`), current ? " · current" : "", h("br"), h("span", {class: "muted"}, lane.version || lane.set)),
    h("div", {class: "track", role: "img", "aria-label": label},
      lane.ready ? h("i", {class: current ? "ready" : "plain", css: {left: "0", width: share(lane.ready)}}) : null,
      lane.machines > lane.ready ? h("i", {class: "unready", css: {left: share(lane.ready), width: share(lane.machines - lane.ready)}}) : null,
      h("i", {class: "goal", css: {left: share(lane.replicas)}})),
    h("span", {class: "dur"}, `${lane.ready} ready of ${lane.machines}`));
}

function budget(each) {
  if (each.problem) return h("span", {class: "window holds"}, `closed: ${each.problem}`);
  const when = each.schedule ? `“${each.schedule}” for ${Math.round(each.seconds / 60)} min` : "always";
  const now = each.holds ? "holds now" : "open now";
  return h("span", {class: `window ${each.holds ? "holds" : ""}`}, `at most ${counted(each.nodes, "Machine")} disturbed, ${when} · ${now}`,
    each.changes ? [" · changes in ", ago(each.changes)] : null, each.reasons.length ? ` · ${each.reasons.join(", ")}` : "");
}

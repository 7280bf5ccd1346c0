// The fleet, counted by what its Machines have in common, then Machine by Machine; and what is wrong.
import {empty, fill, h, panel, table} from "./dom.js";
import {STATES, ago, classOf, counted, number, objectHref, objectLink, reasonTag, shares, stateTag} from "./words.js";

const DIMENSIONS = [
  ["cluster", "Cluster"], ["owner", "Set"], ["zone", "Zone"], ["version", "Version"], ["state", "State"], ["namespace", "Namespace"],
];
const MOST_UNITS = 60;
const FEW = 30;
let by = "owner";
let filters = {};

export function fleetView(view) {
  const totals = h("div", {class: "panel"});
  const groups = h("div", {class: "stack"});
  const problems = h("div", {class: "stack"});
  const list = {offset: 0, search: "", answer: null, version: -1, busy: false};
  fill(view.body, totals, h("div", {class: "split"}, groups, problems));

  const chosen = () => view.store.fleet.cells.filter((cell) => DIMENSIONS.every(([field]) => !(field in filters) || at(cell, field) === filters[field]));
  const at = (cell, field) => cell[view.store.fleet.fields.indexOf(field)];
  const count = (cells) => {
    const found = {};
    for (const cell of cells) found[at(cell, "state")] = (found[at(cell, "state")] ?? 0) + cell[6];
    return found;
  };

  function drawTotals() {
    const states = count(view.store.fleet.cells);
    const fleet = view.store.fleet;
    fill(totals, h("div", {class: "totals"},
      h("div", {class: "total"}, h("b", null, number(fleet.total)), h("span", null, fleet.total === 1 ? "Machine" : "Machines")),
      STATES.filter((state) => states[state]).map((state) => h("div", {class: "total"}, h("b", null, number(states[state])),
        h("span", null, h("i", {class: `dot ${classOf(state)}`}), state))),
      [["clusters", "Cluster"], ["machinedeployments", "MachineDeployment"], ["machinesets", "MachineSet"]].map(([plural, title]) =>
        h("div", {class: "total"}, h("b", null, number(fleet.counts[plural] ?? 0)), h("span", null, fleet.counts[plural] === 1 ? title : `${title}s`)))),
    h("div", {css: {padding: "0 14px 14px"}}, shares(states, "bar tall")),
    Object.entries(fleet.unread).map(([plural, why]) => h("p", {class: "note"}, `${plural} can't be seen: ${why}`)));
  }

  function drawGroups() {
    const cells = chosen(), total = cells.reduce((sum, cell) => sum + cell[6], 0);
    const groupsBy = new Map();
    for (const cell of cells) {
      const value = at(cell, by);
      if (!groupsBy.has(value)) groupsBy.set(value, []);
      groupsBy.get(value).push(cell);
    }
    const found = [...groupsBy].map(([value, of]) => ({value, states: count(of), total: of.reduce((sum, cell) => sum + cell[6], 0)}));
    const bad = (group) => (group.states.failed ?? 0) + (group.states["not Ready"] ?? 0);
    found.sort((a, b) => bad(b) - bad(a) || b.total - a.total || a.value.localeCompare(b.value));
    const free = DIMENSIONS.filter(([field]) => !(field in filters));
    fill(groups,
      panel(h("span", null, `By ${DIMENSIONS.find(([field]) => field === by)[1].toLowerCase()}`, h("span", {class: "muted"}, ` · ${counted(total, "Machine")}`)),
        h("div", null, crumbs(), found.length ? h("div", {class: "cards"}, found.slice(0, 120).map(card)) : empty("No Machines yet. `kubectl apply` a MachineDeployment, and they appear here."),
          found.length > 120 ? h("p", {class: "empty"}, `and ${counted(found.length - 120, "more group")}; choose another dimension or filter`) : null),
        h("div", {class: "segments", role: "group", "aria-label": "Group by"}, free.map(([field, title]) =>
          h("button", {"aria-pressed": field === by ? "true" : "false", "data-key": `by-${field}`, onclick: () => {
            by = field;
            drawGroups();
          }}, title)))),
      Object.keys(filters).length || total <= FEW ? machines(total) : null);
    if (Object.keys(filters).length || total <= FEW) look();
  }

  const crumbs = () => Object.keys(filters).length ? h("div", {class: "crumbs", css: {padding: "12px 14px 0"}},
    Object.entries(filters).map(([field, value]) => h("button", {class: "crumb", "data-key": `crumb-${field}`,
      "aria-label": `Take the filter ${field} ${named(field, value)} away`, onclick: () => {
        delete filters[field];
        by = field;
        reset();
      }}, `${DIMENSIONS.find(([name]) => name === field)[1]}: ${named(field, value)}`, h("span", {"aria-hidden": "true"}, "✕")))) : null;

  const named = (field, value) => value === "" ? {cluster: "no cluster", owner: "no set", zone: "no zone", version: "no version"}[field] ?? "none"
    : field === "owner" ? value.slice(value.indexOf("/") + 1) : value;

  function card(group) {
    const units = group.total <= MOST_UNITS;
    return h("button", {class: "card", "data-key": `card-${group.value}`, onclick: () => {
      filters[by] = group.value;
      by = DIMENSIONS.find(([field]) => !(field in filters))?.[0] ?? by;
      reset();
    }},
    h("span", {class: "title"}, h("span", {class: "name"}, named(by, group.value)), h("span", {class: "count"}, number(group.total))),
    units ? h("span", {class: "units", "aria-hidden": "true"}, STATES.flatMap((state) => Array.from({length: group.states[state] ?? 0}, () => h("i", {class: classOf(state)}))))
      : shares(group.states),
    h("span", {class: "small"}, STATES.filter((state) => group.states[state]).map((state) => h("span", null, `${number(group.states[state])} ${state}`))));
  }

  function reset() {
    Object.assign(list, {offset: 0, answer: null, version: -1});
    drawGroups();
  }

  let listBody = h("div");
  function machines() {
    const search = h("input", {class: "field", type: "search", placeholder: "name, Node or reason", "aria-label": "Search Machines",
      value: list.search, "data-key": "search", oninput: (event) => {
        Object.assign(list, {search: event.target.value, offset: 0, version: -1});
        look();
      }});
    listBody = h("div");
    drawList();
    return panel("Machines", listBody, search);
  }

  function drawList() {
    if (!list.answer) return fill(listBody, empty("Reading…"));
    const rows = list.answer.machines.map((row) => [
      h("a", {href: objectHref("Machine", row.namespace, row.name)}, row.name), stateTag(row.state), row.node ?? "", row.version ?? "", row.zone ?? "",
      ago(row.since), [row.reason, row.message].filter(Boolean).join(": ")]);
    const turn = (offset, title) => h("button", {class: "button small", "data-key": title, onclick: () => {
      Object.assign(list, {offset, version: -1});
      look();
    }}, title);
    const columns = [{title: "Machine"}, {title: "State"}, {title: "Node"}, {title: "Version"}, {title: "Zone"}, {title: "For"}, {title: "Why", wrap: true}];
    const said = columns.map((_, index) => index < 2 || rows.some((row) => row[index]));
    const kept = (list) => list.filter((_, index) => said[index]);
    fill(listBody,
      rows.length ? table("Machines", kept(columns), rows.map(kept))
        : empty("No Machine fits."),
      list.offset || list.answer.more ? h("div", {class: "choose", css: {padding: "10px 14px"}}, list.offset ? turn(Math.max(0, list.offset - 100), "Back") : null,
        list.answer.more ? turn(list.offset + 100, "More") : null) : null);
  }

  async function look() {
    if (list.busy || list.version === view.store.fleet.version) return;
    list.busy = true;
    const version = view.store.fleet.version;
    try {
      list.answer = await view.ask(`/api/machines?${new URLSearchParams({...filters, offset: list.offset, search: list.search})}`);
      list.version = version;
      drawList();
    } catch (error) {
      fill(listBody, h("p", {class: "error"}, error.message));
    }
    list.busy = false;
  }

  function drawProblems() {
    const found = view.store.problems ?? {};
    const wrong = found.problems ?? [], held = found.held ?? [];
    const body = found.failed ? h("p", {class: "error"}, found.failed)
      : !found.at ? empty("Looking…")
        : wrong.length ? h("div", null, wrong.slice(0, 50).map(problem), wrong.length > 50 ? empty(`and ${counted(wrong.length - 50, "more problem")}`) : null)
          : empty("Nothing is wrong.");
    fill(problems, panel(wrong.length ? counted(wrong.length, "problem") : "Problems", body),
      held.length ? panel("Held back", h("div", null, held.slice(0, 30).map(problem))) : null,
      (found.servedBy ?? []).length ? panel("Decides", h("div", null, found.servedBy.map((each) =>
        h("div", {class: "problem"}, h("span", {class: "about"}, each.holder), h("span", {class: "muted"}, `Lease ${each.lease}`))))) : null);
  }

  const problem = (each) => h("div", {class: "problem"},
    h("div", {class: "line"}, h("span", {class: "about"}, objectLink(each.object, each.namespace ?? "")),
      reasonTag(each.reason ?? "", "tag failed", each.runbook), each.since ? h("span", {class: "muted"}, ago(each.since, "for ")) : null),
    each.below ? h("span", {class: "muted"}, "in ", objectLink(each.below, each.namespace ?? "")) : null,
    each.message ? h("span", {class: "why"}, each.message) : null, each.nextStep ? h("span", {class: "step"}, each.nextStep) : null);

  const draw = () => {
    if (!view.store.fleet) return fill(totals, empty("Reading…"));
    drawTotals();
    drawGroups();
    drawProblems();
  };
  return {draw, fleet: draw, changed: (kinds) => kinds.includes("Problems") && drawProblems()};
}

// One Machine: its life as time bars, its tree, and what was said of it.
import {asking} from "./asking.js";
import {empty, fill, h, panel, table} from "./dom.js";
import {treeOf} from "./object.js";
import {ago, clock, lasting, moodClass, objectLink} from "./words.js";

export function machineView(view) {
  const [namespace, name] = view.parts;
  fill(view.heading, name);
  const query = new URLSearchParams({kind: "Machine", namespace, name});
  let tree = null;
  const read = async () => {
    tree = await view.ask(`/api/describe?${query}`).catch(() => null);
  };
  const shown = asking({view: {...view, ask: async (path) => {
    await read();
    return view.ask(path);
  }}, path: () => `/api/life?${query}`, kinds: ["Machine"], draw: (value) => draw(value, tree, namespace), pause: 1000});
  return shown;
}

function draw(value, tree, namespace) {
  return [
    panel("Life", value.stages.length ? gantt(value.stages) : empty("The Machine is gone; only events of it are left.")),
    tree ? panel("State", h("div", {class: "body"}, treeOf([tree.object, tree.servedBy], namespace))) : null,
    panel("What happened", value.entries.length ? table("Events and conditions, newest first", [{title: "Time"}, {title: "Of"}, {title: "What"}, {title: "Message", wrap: true}],
      value.entries.slice().reverse().map((each) => [h("span", {title: each.at}, clock(each.at)), objectLink(each.object ?? "", namespace),
        h("span", {class: each.wrong ? "tag failed" : ""}, each.reason ?? "", each.count ? ` ${each.count}×` : ""), each.message ?? ""])) : empty("Nothing was said of it.")),
  ];
}

export function gantt(stages) {
  const now = Date.now();
  const begin = Math.min(...stages.map((each) => Date.parse(each.from)));
  const end = Math.max(...stages.map((each) => (each.to ? Date.parse(each.to) : now)), begin + 1000);
  // The last stage mostly lasts far longer than all before it: those are given at least 60 % of the width.
  const busy = Math.max(...stages.filter((each) => each.to).map((each) => Date.parse(each.to)), begin + 1000);
  const cut = end - begin > (busy - begin) * 1.7 ? busy : end;
  const place = (at) => (at <= cut ? ((at - begin) / (cut - begin)) * (cut === end ? 100 : 60) : 60 + ((at - cut) / (end - cut)) * 40);
  const rows = stages.flatMap((each) => {
    const from = Date.parse(each.from), to = each.to ? Date.parse(each.to) : now;
    const left = place(from), width = Math.max(0.5, place(to) - left);
    return [h("span", {class: "label"}, each.name),
      h("div", {class: "track", role: "img", "aria-label": `${each.name}: ${lasting(to - from)}${each.to ? "" : ", goes on"}`},
        h("i", {class: `${moodClass(each.mood)} ${each.to ? "" : "open"}`, css: {left: `${left}%`, width: `${width}%`}})),
      h("span", {class: "dur"}, lasting(to - from), each.to ? "" : " …"), each.why ? h("span", {class: "why"}, each.why) : null];
  });
  return h("div", {class: "body"}, h("div", {class: "gantt"}, rows, h("div", {class: "axis"}, h("span", null, clock(begin)), cut === end ? null : h("span", null, `${clock(cut)} · scale changes`), h("span", null, "now"))));
}

// Elements from values. Text of others becomes text nodes only: nothing here parses HTML.

/** h("p", {class: "muted", onclick: f}, "text", child, [more]) → element; null and false children are left out. */
export function h(tag, props, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "css") for (const [key, each] of Object.entries(value)) element.style.setProperty(key, each);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(element, child);
    else element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** Put `children` in place of what is in `element`; the focus stays on the control with the same data-key. */
export function fill(element, ...children) {
  const active = document.activeElement;
  const key = element.contains(active) ? active.getAttribute("data-key") : null;
  const open = new Set([...element.querySelectorAll("details[open][data-key]")].map((each) => each.dataset.key));
  element.replaceChildren();
  append(element, children);
  for (const each of element.querySelectorAll("details[data-key]")) if (open.has(each.dataset.key)) each.open = true;
  if (key !== null) [...element.querySelectorAll("[data-key]")].find((each) => each.getAttribute("data-key") === key)?.focus();
}

export function panel(title, body, ...tools) {
  return h("section", {class: "panel"}, h("header", null, h("h2", null, title), tools), body);
}

export function empty(text) {
  return h("p", {class: "empty"}, text);
}

/** rows: of arrays; columns: [{title, num, wrap}]; on a phone each row becomes a block. */
export function table(caption, columns, rows, classes = "stacked") {
  const cell = (value, index) => {
    const column = columns[index];
    const classes = [column.num ? "num" : "", column.wrap ? "wrap" : ""].join(" ").trim();
    if (index === 0) return h("th", {scope: "row", class: classes || null}, value);
    return h("td", {class: classes || null, "data-label": column.title || null}, value);
  };
  return h("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": caption},
    h("table", {class: classes}, h("caption", {class: "quiet"}, caption),
      h("thead", null, h("tr", null, columns.map((column) => h("th", {scope: "col", class: column.num ? "num" : null}, column.title)))),
      h("tbody", null, rows.map((row) => h("tr", null, row.map(cell))))));
}

// A view that shows one answer of the server, and asks again when one of its kinds has changed.
import {fill, h} from "./dom.js";

/** kinds: which changes concern it; draw(value) → elements; pause: milliseconds between two questions. */
export function asking({view, path, kinds, draw, pause = 700}) {
  let value = null, running = false, again = false, ended = false, timer = 0;
  const show = () => {
    if (value !== null && !ended) fill(view.body, draw(value));
  };
  const look = async () => {
    if (running) {
      again = true;
      return;
    }
    running = true;
    try {
      value = await view.ask(path());
      show();
    } catch (error) {
      if (!ended) fill(view.body, h("p", {class: "error", role: "alert"}, error.message));
    }
    timer = setTimeout(() => {
      running = false;
      if (again && !ended) {
        again = false;
        look();
      }
    }, pause);
  };
  const ticking = setInterval(show, 15000);
  fill(view.body, h("p", {class: "empty"}, "Reading…"));
  look();
  return {
    look,
    changed: (told) => told.some((kind) => kinds.includes(kind)) && look(),
    end: () => {
      ended = true;
      clearTimeout(timer);
      clearInterval(ticking);
    },
  };
}

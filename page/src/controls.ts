// What a reader sets: boxes to tick, and choices.
import { type Child, el } from "./dom";

const PHONE = "(max-width: 40rem)"; // as in page.css

export function box(label: string, checked: boolean, change: (checked: boolean) => void): HTMLElement {
  const made = el("input", { type: "checkbox" });
  made.checked = checked;
  made.addEventListener("change", () => change(made.checked));
  return el("label", { class: "check" }, made, ` ${label}`);
}

export function select<T extends string>(label: string, options: T[], change: (value: T) => void): HTMLElement {
  const made = el("select", {}, ...options.map((text) => el("option", {}, text)));
  made.addEventListener("change", () => change(made.value as T));
  return el("label", {}, `${label} `, made);
}

/** Controls that a phone folds away, so that the picture comes first. */
export function folded(title: string, ...content: Child[]): HTMLElement {
  const made = el("details", { class: "fold" }, el("summary", {}, title), el("div", { class: "controls" }, ...content));
  made.open = !window.matchMedia(PHONE).matches;
  return made;
}

/** How many times larger than the width that there is. */
export const zoom = (change: (zoom: number) => void): HTMLElement =>
  select("Zoom", ["1\u00d7", "2\u00d7", "4\u00d7"], (text) => change(Number.parseInt(text, 10)));

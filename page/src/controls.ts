// What a reader sets: boxes to tick, and choices.
import { el } from "./dom";

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

/** How many times larger than the width that there is. */
export const zoom = (change: (zoom: number) => void): HTMLElement =>
  select("Zoom", ["1\u00d7", "2\u00d7", "4\u00d7"], (text) => change(Number.parseInt(text, 10)));

// Elements are made here and nowhere else. Text goes in as text nodes only, so that no name can become markup.
import { count, decimal, percent, plain } from "./format";

export type Child = Node | string | null | undefined | false;
type Attributes = Record<string, string | number | boolean | null | undefined>;

const LONG = 240; // characters of a text from which it is cut
const LINES = 3; // likewise
const SVG = "http://www.w3.org/2000/svg";

function fill<E extends Element>(node: E, attributes: Attributes, children: Child[]): E {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    node.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) if (child) node.append(child);
  return node;
}

export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  return fill(document.createElement(tag), attributes, children);
}

export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** A name from the data, isolated so that its text direction does not spread. */
export function name(text: string): HTMLElement {
  return el("bdi", {}, text);
}

/** A label or class as a chip, so that it cannot run into a number beside it. */
export function chip(text: string): HTMLElement {
  return el("bdi", { class: "label", title: plain(text) }, text);
}

/** What stands where a value is not known. */
export function unknown(): HTMLElement {
  return el("span", { class: "unknown", title: "not known" }, "\u2013");
}

/** A value in words, or a dash. */
export function orDash<T>(value: T | null, words: (value: T) => string): Child {
  return value === null ? unknown() : words(value);
}

export const asPercent = (value: number | null): Child => orDash(value, (v) => percent(v));
export const asCount = (value: number | null): Child => orDash(value, count);
export const asDecimal = (value: number | null): Child => orDash(value, (v) => decimal(v));

export function button(className: string, text: string, click: () => void): HTMLButtonElement {
  const made = el("button", { type: "button", class: className }, text);
  made.addEventListener("click", click);
  return made;
}

/** Text for screen readers only. */
export function aside(text: string): HTMLElement {
  return el("span", { class: "visually-hidden" }, text);
}

export function sentence(text: string): HTMLElement {
  return el("p", { class: "empty" }, text);
}

/** A text from the data, in its own direction; a long one is cut to a few lines until it is opened. */
export function passage(text: string): HTMLElement {
  const whole = el("p", { class: "passage", dir: "auto" }, text);
  if (text.length <= LONG && text.split("\n").length <= LINES) return whole;
  whole.classList.add("cut");
  const toggle = button("open", "Show the whole text", () => {
    const cut = whole.classList.toggle("cut");
    toggle.textContent = cut ? "Show the whole text" : "Show less of the text";
    toggle.setAttribute("aria-expanded", String(!cut));
  });
  toggle.setAttribute("aria-expanded", "false");
  return el("div", {}, whole, toggle);
}

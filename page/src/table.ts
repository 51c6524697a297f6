// Plain tables: the twin of every chart, and the lists.
import { type Child, el } from "./dom";
import { framed } from "./edges";

export interface Head {
  title: string;
  numeric?: boolean;
}

export const number = (title: string): Head => ({ title, numeric: true });

/** A table with a head; the first cell of a row names it. */
export function table(caption: string, heads: Head[], rows: Child[][], className = "plain"): HTMLElement {
  const head = el("tr", {}, ...heads.map((h) => el("th", { scope: "col", class: h.numeric && "number" }, h.title)));
  const body = rows.map((cells) =>
    el(
      "tr",
      {},
      ...cells.map((cell, i) => {
        const style = heads[i]?.numeric && "number";
        return i === 0 ? el("th", { scope: "row", class: style }, cell) : el("td", { class: style }, cell);
      }),
    ),
  );
  const made = el(
    "table",
    { class: className },
    el("caption", { class: "visually-hidden" }, caption),
    el("thead", {}, head),
    el("tbody", {}, ...body),
  );
  return scrolling(caption, made);
}

/** A box that scrolls by itself (also by keyboard), so that the page never does; its edges show where there is more. */
export function scrolling(label: string, content: HTMLElement): HTMLElement {
  return framed(el("div", { class: "scroll", role: "group", tabindex: 0, "aria-label": label }, content));
}

// A matrix of true classes against labels given, as a table: the numbers are read, the shading only helps.
import { type Child, el, unknown } from "./dom";
import { plain } from "./format";
import { scrolling } from "./table";

const MOST = 12; // classes that one matrix shows
const DARKEST = 0.5; // so that the numbers keep their contrast

/** What a cell holds. */
export interface Entry {
  words: string;
  share: number; // of its row
  about: string; // more of it
}

function heading(scope: "row" | "col", label: string): HTMLElement {
  return el("th", { scope, title: plain(label) }, el("bdi", { class: "class-name" }, label));
}

function cell(words: Child, share: number, right: boolean, about?: string): HTMLElement {
  const made = el("td", { class: right ? "right" : "wrong", title: about }, words);
  if (share > 0) {
    // The root lets the few wrong answers of a good worker be seen.
    const shade = (DARKEST * Math.sqrt(Math.min(share, 1))).toFixed(3);
    made.style.backgroundColor = `rgb(var(${right ? "--heat-right" : "--heat-wrong"}) / ${shade})`;
  } else made.classList.add("none");
  return made;
}

/** The classes that are shown, by the weight of each: all, or the heaviest of many, in their own order. */
export function heaviest(weight: number[], kept = MOST): number[] {
  const all = weight.map((_, k) => k);
  if (all.length <= MOST) return all;
  return all
    .sort((a, b) => weight[b]! - weight[a]!)
    .slice(0, kept)
    .sort((a, b) => a - b);
}

/** The classes `shown` against each other; what is not known (null) is a dash. */
export function matrixTable(
  shown: number[],
  classes: string[],
  caption: string,
  entry: (truth: number, given: number) => Entry | null,
): HTMLElement {
  const label = (k: number) => classes[k] ?? "";
  const rows = shown.map((truth) =>
    el(
      "tr",
      {},
      heading("row", label(truth)),
      ...shown.map((given) => {
        const found = entry(truth, given);
        if (!found) return cell(unknown(), 0, truth === given);
        const about = `true class ${plain(label(truth))}, label given ${plain(label(given))}: ${found.about}`;
        return cell(found.words, found.share, truth === given, about);
      }),
    ),
  );
  const corner = el("td", { class: "corner" }, "true \u2193 given \u2192");
  const table = el(
    "table",
    { class: "confusion" },
    el("caption", { class: "visually-hidden" }, caption),
    el("thead", {}, el("tr", {}, corner, ...shown.map((k) => heading("col", label(k))))),
    el("tbody", {}, ...rows),
  );
  return scrolling(caption, table);
}

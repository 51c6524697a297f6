// Confusion matrices as tables: the numbers are read, the shading only helps.
import type { Cells } from "./data";
import { el, sentence } from "./dom";
import { count, percent, plain } from "./format";
import { scrolling } from "./table";

const MOST = 12; // classes that one matrix shows
const DARKEST = 0.5; // so that the numbers keep their contrast

/** The classes with most answers, in their own order. */
function busiest(cells: Cells, classes: number): number[] {
  const all = Array.from({ length: classes }, (_, k) => k);
  if (classes <= MOST) return all;
  const mass = new Array<number>(classes).fill(0);
  for (const [truth, said, answers] of cells) {
    mass[truth] = (mass[truth] ?? 0) + answers;
    if (said !== truth) mass[said] = (mass[said] ?? 0) + answers;
  }
  const used = all.filter((k) => mass[k]! > 0);
  return used
    .sort((a, b) => mass[b]! - mass[a]!)
    .slice(0, MOST)
    .sort((a, b) => a - b);
}

function heading(scope: "row" | "col", label: string): HTMLElement {
  return el("th", { scope, title: plain(label) }, el("bdi", { class: "class-name" }, label));
}

function cell(answers: number, words: string, share: number, right: boolean, about: string): HTMLElement {
  const made = el("td", { class: right ? "right" : "wrong", title: about }, words);
  if (answers > 0) {
    // The root lets the few wrong answers of a good worker be seen.
    const shade = (DARKEST * Math.sqrt(share)).toFixed(3);
    made.style.backgroundColor = `rgb(var(${right ? "--heat-right" : "--heat-wrong"}) / ${shade})`;
  } else made.classList.add("none");
  return made;
}

/** An expected count; in a matrix of whole numbers all are written as such. */
function shortCount(answers: number, whole: boolean): string {
  if (answers <= 0) return "0";
  if (whole || answers >= 99.95) return count(Math.round(answers));
  return answers < 0.05 ? "<0.1" : answers.toFixed(1);
}

/** The matrix of a worker, or of many. */
export function confusionTable(cells: Cells, classes: string[], caption: string): HTMLElement {
  if (!cells.length) return sentence("No confusion matrix is known here.");
  const shown = busiest(cells, classes.length);
  const at = new Map(cells.map(([truth, said, answers]) => [`${truth},${said}`, answers]));
  const whole = cells.every(([, , answers]) => Number.isInteger(answers));
  const totals = new Map<number, number>();
  for (const [truth, , answers] of cells) totals.set(truth, (totals.get(truth) ?? 0) + answers);

  const rows = shown.map((truth) =>
    el(
      "tr",
      {},
      heading("row", classes[truth] ?? ""),
      ...shown.map((said) => {
        const answers = at.get(`${truth},${said}`) ?? 0;
        const share = answers / Math.max(totals.get(truth) ?? 0, 1e-12);
        const pair = `${plain(classes[truth] ?? "")} told as ${plain(classes[said] ?? "")}`;
        const about = `${pair}: ${percent(share)} of the row`;
        return cell(answers, shortCount(answers, whole), share, truth === said, about);
      }),
    ),
  );
  const table = el(
    "table",
    { class: "confusion" },
    el("caption", { class: "visually-hidden" }, caption),
    el(
      "thead",
      {},
      el(
        "tr",
        {},
        el("td", { class: "corner" }, "true \u2193 told \u2192"),
        ...shown.map((k) => heading("col", classes[k] ?? "")),
      ),
    ),
    el("tbody", {}, ...rows),
  );
  const cut = shown.length < classes.length;
  return el(
    "div",
    { class: "matrix" },
    scrolling(caption, table),
    cut &&
      el("p", { class: "note" }, `The ${count(shown.length)} classes with most answers, of ${count(classes.length)}.`),
  );
}

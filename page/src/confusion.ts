// Confusion matrices of expected answers.
import type { MatrixCell } from "./generated";
import { el, sentence } from "./dom";
import { count, percent } from "./format";
import { heaviest, matrixTable } from "./matrix";

/** The classes with most answers, in their own order. */
function busiest(cells: MatrixCell[], classes: number): number[] {
  const mass = new Array<number>(classes).fill(0);
  for (const [truth, given, answers] of cells) {
    mass[truth] = (mass[truth] ?? 0) + answers;
    if (given !== truth) mass[given] = (mass[given] ?? 0) + answers;
  }
  const shown = heaviest(mass);
  return shown.length < classes ? shown.filter((k) => mass[k]! > 0) : shown;
}

/** An expected count; in a matrix of whole numbers all are written as such. */
function shortCount(answers: number, whole: boolean): string {
  if (answers <= 0) return "0";
  if (whole || answers >= 99.95) return count(Math.round(answers));
  return answers < 0.05 ? "<0.1" : answers.toFixed(1);
}

/** The matrix of a worker, or of many. */
export function confusionTable(cells: MatrixCell[], classes: string[], caption: string): HTMLElement {
  if (!cells.length) return sentence("No confusion matrix is known here.");
  const shown = busiest(cells, classes.length);
  const at = new Map(cells.map(([truth, given, answers]) => [`${truth},${given}`, answers]));
  const whole = cells.every(([, , answers]) => Number.isInteger(answers));
  const totals = new Map<number, number>();
  for (const [truth, , answers] of cells) totals.set(truth, (totals.get(truth) ?? 0) + answers);

  const made = matrixTable(shown, classes, caption, (truth, given) => {
    const answers = at.get(`${truth},${given}`) ?? 0;
    const share = answers / Math.max(totals.get(truth) ?? 0, 1e-12);
    return { words: shortCount(answers, whole), share, about: `${percent(share)} of the row` };
  });
  const cut = shown.length < classes.length;
  return el(
    "div",
    { class: "matrix" },
    made,
    cut &&
      el("p", { class: "note" }, `The ${count(shown.length)} classes with most answers, of ${count(classes.length)}.`),
  );
}

// Confusion matrices of probabilities: what a worker tells, for each true class.
import type { Cells } from "./data";
import { el, sentence } from "./dom";
import { count, percent } from "./format";
import { heaviest, matrixTable } from "./matrix";

const KEPT = 10; // of many classes, so that two matrices have room beside each other
const FEW = 4; // classes up to which there is room for a digit behind the point

export const isLarge = (classes: string[]): boolean => classes.length > FEW;

/** The classes that are mixed up most in any of these matrices; what is right only decides between equals. */
export function mixedMost(matrices: Cells[], classes: string[]): number[] {
  const mass = new Array<number>(classes.length).fill(0);
  for (const [truth, said, chance] of matrices.flat()) {
    const weight = truth === said ? 1e-6 * chance : chance;
    for (const k of [truth, said]) mass[k] = (mass[k] ?? 0) + weight;
  }
  return heaviest(mass, KEPT);
}

/** Says which classes are shown, where not all are. */
export function cutNote(shown: number[], classes: string[]): HTMLElement | false {
  const words = `The ${count(shown.length)} classes that are mixed up most, of ${count(classes.length)}.`;
  return shown.length < classes.length && el("p", { class: "note" }, words);
}

function shortPercent(chance: number, digits: number): string {
  const least = 0.01 / 10 ** digits;
  return chance > 0 && chance < least / 2 ? `<${percent(least, digits)}` : percent(chance, digits);
}

/** The matrix of these classes. A row without cells is not known; else what has no cell is small, if that is sure. */
export function chanceTable(cells: Cells, shown: number[], classes: string[], caption: string): HTMLElement {
  if (!cells.length) return sentence("No confusion matrix is known here.");
  const at = new Map(cells.map(([truth, said, chance]) => [`${truth},${said}`, chance]));
  const rest = new Map<number, number>();
  for (const [truth, , chance] of cells) rest.set(truth, (rest.get(truth) ?? 1) - chance);
  const least = cells.reduce((a, [, , chance]) => Math.min(a, chance), 1);
  const digits = isLarge(classes) ? 0 : 1;
  return matrixTable(shown, classes, caption, (truth, said) => {
    const chance = at.get(`${truth},${said}`) ?? 0;
    const atMost = rest.has(truth) ? Math.min(least, rest.get(truth)!) : 1; // of a cell that was left out
    if (!chance && atMost >= 0.005) return null;
    return { words: chance ? shortPercent(chance, digits) : "0", share: chance, about: percent(chance) };
  });
}

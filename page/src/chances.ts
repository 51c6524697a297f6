// Confusion matrices of probabilities.
import type { MatrixCell } from "./generated";
import { el, sentence } from "./dom";
import { count, percent } from "./format";
import { heaviest, matrixTable } from "./matrix";

const KEPT = 10; // of many classes, so that two matrices have room beside each other
const FEW = 4; // classes up to which there is room for a digit behind the point

/** The classes that are mixed up most in any of these matrices; what is right only decides between equals. */
export function mixedMost(matrices: MatrixCell[][], classes: string[]): number[] {
  const mass = new Array<number>(classes.length).fill(0);
  for (const [truth, given, chance] of matrices.flat()) {
    const weight = truth === given ? 1e-6 * chance : chance;
    for (const k of [truth, given]) mass[k] = (mass[k] ?? 0) + weight;
  }
  return heaviest(mass, KEPT);
}

/** A note on the classes shown, if not all are. */
export function cutNote(shown: number[], classes: string[]): HTMLElement | false {
  const words = `The ${count(shown.length)} classes that are mixed up most, of ${count(classes.length)}.`;
  return shown.length < classes.length && el("p", { class: "note" }, words);
}

/** A probability in words; of one that was omitted only an upper bound is known. */
function inWords(chance: number | undefined, most: number, digits: number): string {
  const unit = 0.01 / 10 ** digits;
  if (chance !== undefined) return chance < unit / 2 ? `<${percent(unit, digits)}` : percent(chance, digits);
  return most < unit / 2 ? "0" : `<${percent((Math.floor(most / unit) + 1) * unit, digits)}`;
}

/** The matrix of these classes. A row without cells is not known; other missing cells are small. */
export function chanceTable(cells: MatrixCell[], shown: number[], classes: string[], caption: string): HTMLElement {
  if (!cells.length) return sentence("No confusion matrix is known here.");
  const at = new Map(cells.map(([truth, given, chance]) => [`${truth},${given}`, chance]));
  const rest = new Map<number, number>();
  for (const [truth, , chance] of cells) rest.set(truth, (rest.get(truth) ?? 1) - chance);
  const least = cells.reduce((a, [, , chance]) => Math.min(a, chance), 1); // the smallest are left out
  return matrixTable(shown, classes, caption, (truth, given) => {
    const left = rest.get(truth);
    if (left === undefined) return null;
    const chance = at.get(`${truth},${given}`);
    const words = (digits: number) => inWords(chance, Math.min(least, left), digits);
    return { words: words(classes.length > FEW ? 0 : 1), share: chance ?? 0, about: words(1) };
  });
}

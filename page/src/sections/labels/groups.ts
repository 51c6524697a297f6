// Groups of workers with similar errors; where the truth is known, true and estimated confusion matrices.
import { chanceTable, cutNote, mixedMost } from "../../chances";
import type { Compared, Group, Groups, MatrixCell, Shared } from "../../generated";
import { el, name } from "../../dom";
import { count, decimal, percent, plain } from "../../format";

const WIDE = 5; // with more classes than these a matrix is wide
const IN_PAIRS = 3; // classes up to which two pairs go beside each other

const sizeOf = (classes: string[]): string => (classes.length > WIDE ? "matrices wide" : "matrices small");

function facts(group: Group): HTMLElement {
  const lines: [string, string][] = [
    ["Share of the crowd", percent(group.share)],
    ["Expected workers", count(group.workers)],
    ["Similarity to the identity", decimal(group.similarity)],
    ["Entropy of a row", `${decimal(group.entropy)} bits`],
  ];
  return el("dl", { class: "measures" }, ...lines.map(([what, value]) => line(what, value)));
}

function line(what: string, value: string): HTMLElement {
  return el("div", {}, el("dt", {}, what), el("dd", {}, value));
}

function groupFigure(groups: Group[], headline: string, note: string, classes: string[]): HTMLElement {
  const all = groups.map((group) => group.cells);
  const shown = mixedMost(all, classes);
  const made = groups.map((group, i) => {
    const caption = `Group ${i + 1}: how often workers give each label (columns) for each true class (rows)`;
    return el(
      "div",
      {},
      el("h3", {}, `Group ${i + 1}`),
      facts(group),
      chanceTable(group.cells, shown, classes, caption),
    );
  });
  return el(
    "figure",
    {},
    el("figcaption", {}, headline),
    note && el("p", { class: "caution" }, note),
    cutNote(shown, classes),
    el("div", { class: sizeOf(classes) }, ...made),
  );
}

function pair({ title, worker, divergence, truth, estimated }: Compared, classes: string[]): HTMLElement {
  const shown = mixedMost([truth, estimated], classes);
  const met = new Set(truth.map(([k]) => k));
  const whose = worker === null ? title : `${title}, ${plain(worker)}`;
  const side = (words: string, cells: MatrixCell[]) =>
    el("div", {}, el("h4", {}, words), chanceTable(cells, shown, classes, `${whose}: ${words}`));
  return el(
    "div",
    {},
    el("h3", {}, title, worker !== null && ": ", worker !== null && name(worker)),
    el(
      "p",
      { class: "note" },
      `Divergence of the two: ${decimal(divergence, 4)} bits.`,
      shown.some((k) => !met.has(k)) && " Dashes: classes that never occurred here.",
    ),
    cutNote(shown, classes),
    el("div", { class: sizeOf(classes) }, side("true", truth), side("estimated", estimated)),
  );
}

export function draw(found: Groups, { classes }: Shared): HTMLElement[] {
  const shown = groupFigure(found.groups, found.headline, found.note, classes);
  if (!found.compared.length) return [shown];
  const pairs = found.compared.map((each) => pair(each, classes));
  const compared = el(
    "figure",
    {},
    el("figcaption", {}, found.compared_headline),
    el("div", { class: classes.length > IN_PAIRS ? "pairs wide" : "pairs" }, ...pairs),
  );
  return [shown, compared];
}

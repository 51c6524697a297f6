// Histograms of the answers, and confusion matrices.
import { binName, drawHistogram } from "../../charts";
import { confusionTable } from "../../confusion";
import { el, name } from "../../dom";
import { figure } from "../../figure";
import { count, plain } from "../../format";
import type { Histogram, Pictures, Shared } from "../../generated";
import { number } from "../../table";

/** A histogram of a single bar shows no more than its headline. */
const isDrawn = ({ bins }: Histogram): boolean => bins.length > 1;

function histogram(each: Histogram): HTMLElement {
  const made = figure({
    label: each.title,
    headline: each.headline,
    draw: (width) => drawHistogram(each, width),
    heads: [{ title: each.unit || "Value" }, number(`Number of ${each.counted}`)],
    rows: each.bins.map((b) => [binName(each, b), count(b.count)]),
  });
  return el("div", {}, el("h3", {}, each.title), made);
}

export function draw({ headline, histograms, matrices: shown }: Pictures, { classes }: Shared): HTMLElement[] {
  const matrices = shown.map((m) =>
    el(
      "div",
      {},
      el("h3", {}, m.title, m.worker !== null && ": ", m.worker !== null && name(m.worker)),
      confusionTable(m.cells, classes, m.worker === null ? m.title : `${m.title}: ${plain(m.worker)}`),
    ),
  );
  const drawn = histograms.filter(isDrawn);
  const sentences = histograms
    .filter((each) => !isDrawn(each))
    .map((each) => el("p", {}, el("strong", {}, `${each.title}: `), each.headline));
  return [
    ...(drawn.length ? [el("div", { class: "histograms" }, ...drawn.map(histogram))] : []),
    ...sentences,
    el(
      "figure",
      {},
      el("figcaption", {}, headline),
      el("div", { class: classes.length > 5 ? "matrices wide" : "matrices" }, ...matrices),
    ),
  ];
}

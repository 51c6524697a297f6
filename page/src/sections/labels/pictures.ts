// Histograms of the answers, and confusion matrices.
import { binName, drawHistogram } from "../../charts";
import { confusionTable } from "../../confusion";
import { el, name } from "../../dom";
import { figure } from "../../figure";
import { count, plain } from "../../format";
import type { Histogram, Pictures, Shared } from "../../generated";
import { number } from "../../table";

function histogram(each: Histogram): HTMLElement {
  const title = el("h3", {}, each.title);
  const made = figure({
    label: each.title,
    headline: each.headline,
    draw: (width) => drawHistogram(each, width),
    heads: [{ title: each.unit || "Value" }, number("How many")],
    rows: each.bins.map((b) => [binName(each, b), count(b.count)]),
  });
  return el("div", {}, title, made);
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
  return [
    el("div", { class: "histograms" }, ...histograms.map(histogram)),
    el(
      "figure",
      {},
      el("figcaption", {}, headline),
      el("div", { class: classes.length > 5 ? "matrices wide" : "matrices" }, ...matrices),
    ),
  ];
}

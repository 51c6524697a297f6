// The sections that are charts: what each says, draws and lists.
import { binName, drawHistogram, drawMixups, drawPrevalence } from "./charts";
import { confusionTable } from "./confusion";
import { drawCurve, drawTimes } from "./curves";
import type { Histogram, Page } from "./data";
import { asCount, asDecimal, asPercent, chip, el, name, nothing, sentence } from "./dom";
import { figure, key, type Mark } from "./figure";
import { count, percent, plain, seconds } from "./format";
import { number, table } from "./table";

const MOST_CLASSES = 30;

export function prevalenceSection({ prevalence, prevalence_says: says, classes }: Page): HTMLElement[] {
  if (!prevalence.length) return nothing(says, "No prevalence is known.");
  const many = prevalence.length > MOST_CLASSES;
  const rows = many ? [...prevalence].sort((a, b) => b.truth - a.truth).slice(0, MOST_CLASSES) : prevalence;
  const note =
    many && el("p", { class: "note" }, `The ${MOST_CLASSES} most frequent of ${count(prevalence.length)} classes.`);
  const made = figure({
    label: "Share of each class in the raw votes and in the estimated truth",
    says,
    key: key(["ring", "raw votes"], ["dot", "estimated truth"]),
    draw: (width) => drawPrevalence(rows, classes, width),
    heads: [{ title: "Class" }, number("Raw votes"), number("Estimated truth"), number("Change in points")],
    rows: rows.map((r) => [
      chip(classes[r.label] ?? ""),
      percent(r.votes),
      percent(r.truth),
      signed(100 * (r.truth - r.votes)),
    ]),
  });
  return note ? [made, note] : [made];
}

function signed(value: number): string {
  const text = Math.abs(value).toFixed(1);
  return text === "0.0" ? text : `${value < 0 ? "\u2212" : "+"}${text}`;
}

export function mixupsSection({ mixups, classes }: Page): HTMLElement[] {
  const { rows, says } = mixups;
  if (!rows.length) return nothing(says, "No two classes are mixed up.");
  return [
    figure({
      label: "Pairs of classes that get mixed up",
      says,
      draw: (width) => drawMixups(rows, classes, width),
      heads: [
        { title: "True class" },
        { title: "Label given" },
        number("Expected answers"),
        number("Share of the answers to this class"),
      ],
      rows: rows.map((r) => [
        chip(classes[r.truth] ?? ""),
        chip(classes[r.said] ?? ""),
        count(r.answers),
        percent(r.share),
      ]),
    }),
  ];
}

const PLAN_MARKS: Mark[] = ["line", "dashes", "points"];

export function curveSection({ curve }: Page): HTMLElement[] {
  const { points, says } = curve;
  if (!points.length) return nothing(says, "The value of more answers cannot be estimated.");
  const plans = [...new Set(points.map((p) => p.plan))];
  return [
    figure({
      label: "Expected accuracy after more answers",
      says,
      key: key(...plans.map((plan, i): [Mark, string] => [PLAN_MARKS[i % 3]!, plan])),
      draw: (width) => drawCurve(points, width),
      heads: [
        { title: "More answers to" },
        number("Answers added"),
        number("Expected accuracy"),
        number("Low"),
        number("High"),
      ],
      rows: points.map((p) => [p.plan, count(p.answers), percent(p.accuracy), percent(p.low), percent(p.high)]),
    }),
  ];
}

export function timesSection({ times }: Page): HTMLElement[] {
  if (!times) return nothing(undefined, "The answers carry no times, so time and skill cannot be compared.");
  const drawn = times.rows.filter(([, time]) => time > 0); // a logarithm has no place for others
  if (!drawn.length) return nothing(times.says, "No worker has a time above zero.");
  return [
    figure({
      label: "Median time per answer against skill, one mark per worker",
      says: times.says,
      key: key(["dot", "worker"], ["cross", "flagged worker"]),
      draw: (width) => drawTimes(drawn, width),
      heads: [{ title: "Worker" }, number("Median seconds"), number("Skill"), { title: "Flagged" }],
      rows: times.rows.map(([worker, time, skill, flagged]) => [
        name(worker),
        seconds(time),
        percent(skill),
        flagged ? "flagged" : "no",
      ]),
    }),
  ];
}

/** A histogram of a single bar shows no more than its sentence, so the sentence is enough. */
const isDrawn = ({ bins }: Histogram): boolean => bins.length > 1;

function histogram(each: Histogram): HTMLElement {
  const made = figure({
    label: each.title,
    says: each.says,
    draw: (width) => drawHistogram(each, width),
    heads: [{ title: each.unit || "Value" }, number("How many")],
    rows: each.bins.map((b) => [binName(each, b), count(b.count)]),
  });
  return el("div", {}, el("h3", {}, each.title), made);
}

export function picturesSection({ pictures, classes }: Page): HTMLElement[] {
  const matrices = pictures.matrices.map((m) =>
    el(
      "div",
      {},
      el("h3", {}, m.title, m.worker !== null && ": ", m.worker !== null && name(m.worker)),
      confusionTable(m.cells, classes, m.worker === null ? m.title : `${m.title}: ${plain(m.worker)}`),
    ),
  );
  const shown = matrices.length
    ? el(
        "figure",
        {},
        el("figcaption", {}, pictures.says),
        el("div", { class: classes.length > 5 ? "matrices wide" : "matrices" }, ...matrices),
      )
    : sentence(pictures.says || "No confusion matrix is known.");
  const drawn = pictures.histograms.filter(isDrawn);
  const sentences = pictures.histograms
    .filter((each) => !isDrawn(each))
    .map((each) => el("p", {}, el("strong", {}, `${each.title}: `), each.says || "nothing to count."));
  const histograms = drawn.length ? [el("div", { class: "histograms" }, ...drawn.map(histogram))] : [];
  return [...histograms, ...sentences, shown];
}

export function modelsSection({ models }: Page): HTMLElement[] {
  if (!models || !models.rows.length) return nothing(models?.says, "No other models were fitted for this report.");
  const scored = models.rows.some((r) => r.accuracy !== null);
  const heads = [
    { title: "Model" },
    number("Labels that differ"),
    ...(scored ? [number("Accuracy on gold"), number("Log loss on gold")] : []),
    number("Iterations"),
    { title: "Converged" },
    number("Time"),
  ];
  const rows = models.rows.map((r, i) => [
    el("span", {}, r.model, i === 0 && el("span", { class: "flag quiet" }, "\u25cf this report")),
    asCount(r.differs),
    ...(scored ? [asPercent(r.accuracy), asDecimal(r.log_loss)] : []),
    asCount(r.iterations),
    r.converged ? "yes" : "no",
    seconds(r.seconds),
  ]);
  return [el("p", { class: "says" }, models.says), table("Models compared", heads, rows)];
}

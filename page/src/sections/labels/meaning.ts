// What the probabilities mean: facts in words, and a reliability diagram where labels are known.
import { dot, link, type Markish } from "@observablehq/plot";
import { COOL, PAPER } from "../../chart-style";
import { el } from "../../dom";
import { figure, key } from "../../figure";
import { count, percent } from "../../format";
import type { Meaning, ReliabilityBin } from "../../generated";
import { rangeOf, square } from "../../square";
import { number } from "../../table";

function about([probability, right, low, high, tasks]: ReliabilityBin): string {
  const words = `${count(tasks)} known task${tasks === 1 ? "" : "s"} with a mean probability of ${percent(probability)}`;
  return `${words}: ${percent(right)} right (${percent(low)} to ${percent(high)})`;
}

function drawBins(bins: ReliabilityBin[], width: number): Element {
  const marks: Markish[] = [
    link(bins, { x1: "0", x2: "0", y1: "2", y2: "3", stroke: COOL, strokeWidth: 2 }),
    dot(bins, {
      x: "0",
      y: "1",
      r: 6,
      fill: COOL,
      stroke: PAPER,
      title: about,
    }),
  ];
  const range = rangeOf(bins.flatMap(([probability, , low, high]) => [probability, low, high]));
  return square({ width, range, x: "mean probability", y: "share of right labels", diagonal: true }, marks);
}

export function draw({ headline, facts, bins_headline, bins }: Meaning): HTMLElement[] {
  const list = el(
    "dl",
    { class: "facts" },
    ...facts.map((fact) => el("div", {}, el("dt", {}, fact.name), el("dd", {}, fact.text))),
  );
  const words = [el("p", {}, headline), list];
  if (!bins.length) return words;
  return [
    ...words,
    figure({
      label: "Reliability diagram: share of right labels by their probability",
      headline: bins_headline,
      key: key(["dot", "known tasks with similar probabilities"], ["line", "90\u202f% interval"]),
      draw: (width) => drawBins(bins, width),
      heads: [number("Mean probability"), number("Right"), number("Low"), number("High"), number("Known tasks")],
      rows: bins.map(([probability, right, low, high, tasks]) => [
        percent(probability),
        percent(right),
        percent(low),
        percent(high),
        count(tasks),
      ]),
    }),
  ];
}

// The share of each class in the answers and in the estimated truth.
import { drawPrevalence } from "../../charts";
import { chip, el } from "../../dom";
import { figure, key } from "../../figure";
import { count, percent } from "../../format";
import type { Prevalence, Shared } from "../../generated";
import { number } from "../../table";

const MOST_CLASSES = 30;

export function draw({ headline, rows: all }: Prevalence, { classes }: Shared): HTMLElement[] {
  const many = all.length > MOST_CLASSES;
  const rows = many ? [...all].sort((a, b) => b.truth - a.truth).slice(0, MOST_CLASSES) : all;
  const note =
    many && el("p", { class: "note" }, `The ${MOST_CLASSES} most frequent of ${count(all.length)} classes.`);
  const made = figure({
    label: "Share of each class in the raw votes and in the estimated truth",
    headline,
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

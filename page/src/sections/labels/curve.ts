// Expected accuracy after more answers.
import { drawCurve } from "../../curves";
import { figure, key, type Mark } from "../../figure";
import { count, percent } from "../../format";
import type { Curve, CurvePoint } from "../../generated";
import { number } from "../../table";

const PLAN_MARKS: Mark[] = ["line", "dashes", "points"];

/** The shaded band, with its ends at the start in words: the chart cuts it. */
function rangeKey(points: CurvePoint[]): [Mark, string][] {
  const now = points.find((p) => p.answers === 0);
  return now ? [["band", `range of the present labels: ${percent(now.low)} to ${percent(now.high)}`]] : [];
}

export function draw({ headline, points }: Curve): HTMLElement[] {
  const plans = [...new Set(points.map((p) => p.plan))];
  return [
    figure({
      label: "Expected accuracy after more answers",
      headline,
      key: key(...plans.map((plan, i): [Mark, string] => [PLAN_MARKS[i % 3]!, plan]), ...rangeKey(points)),
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

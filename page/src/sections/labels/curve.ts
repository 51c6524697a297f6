// Expected accuracy after more answers.
import { drawCurve } from "../../curves";
import { figure, key, type Mark } from "../../figure";
import { count, percent } from "../../format";
import type { Curve } from "../../generated";
import { number } from "../../table";

const PLAN_MARKS: Mark[] = ["line", "dashes", "points"];

export function draw({ headline, points }: Curve): HTMLElement[] {
  const plans = [...new Set(points.map((p) => p.plan))];
  return [
    figure({
      label: "Expected accuracy after more answers",
      headline,
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

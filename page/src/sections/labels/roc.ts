// ROC curves, one per method.
import { dot, line, type Markish } from "@observablehq/plot";
import { PAPER } from "../../chart-style";
import type { Roc, RocCurve, Shared } from "../../generated";
import { el, name } from "../../dom";
import { figure, key } from "../../figure";
import { decimal, percent, plain, short } from "../../format";
import { lineSample, paint, styleOf } from "../../series";
import { lettersLeft, square } from "../../square";
import { number } from "../../table";

const READ_AT = [0.01, 0.05, 0.1, 0.2, 0.5]; // false positive rates at which the curves are read
const THICK = 3.5; // the line of the method of this result
const THIN = 1.8;

/** The true positive rate at a false positive rate. */
function found({ points }: RocCurve, rate: number): number {
  const after = points.findIndex(([x]) => x > rate);
  if (after < 1) return points[after < 0 ? points.length - 1 : 0]?.[1] ?? 0;
  const [x1, y1] = points[after - 1]!;
  const [x2, y2] = points[after]!;
  return y1 + ((y2 - y1) * (rate - x1)) / (x2 - x1);
}

function curveMarks(curve: RocCurve, place: number): Markish[] {
  const style = styleOf(place);
  const area = `${plain(curve.method)}, area under the curve ${decimal(curve.auc, 3)}`;
  return [
    line(curve.points, {
      x: "0",
      y: "1",
      stroke: style.colour,
      strokeWidth: place ? THIN : THICK,
      strokeDasharray: style.dash,
      strokeLinejoin: "round",
      title: () => area,
    }),
    dot(READ_AT, {
      x: (rate: number) => rate,
      y: (rate: number) => found(curve, rate),
      symbol: style.symbol,
      r: place ? 4 : 5,
      stroke: PAPER,
      ...paint(style),
      title: (rate: number) => `${area}: ${percent(found(curve, rate))} true positives at ${percent(rate, 0)} false positives`,
    }),
  ];
}

function drawRoc(curves: RocCurve[], whose: string | null, width: number): Element {
  // The method of this result lies on top.
  const marks = curves.map(curveMarks).reverse().flat();
  const of = whose === null ? "all classes together" : short(whose, lettersLeft(width, 26));
  const words = { x: "false positive rate", y: `true positive rate (${of})` };
  return square({ width, range: [0, 1], ...words, diagonal: true }, marks);
}

export function draw({ headline, positive, curves }: Roc, { classes }: Shared): HTMLElement[] {
  const whose = positive === null ? null : (classes[positive] ?? "");
  return [
    figure({
      label: "ROC curves: true against false positive rate, one curve per method",
      headline,
      key: key(
        ...curves.map((c, i): [SVGElement, HTMLElement] => [
          lineSample(styleOf(i), i ? THIN : THICK),
          el(i ? "span" : "strong", {}, name(c.method), `, area ${decimal(c.auc, 3)}`),
        ]),
      ),
      draw: (width) => drawRoc(curves, whose, width),
      heads: [
        { title: "Method" },
        number("Area under the curve"),
        ...READ_AT.map((rate) => number(`True positives at ${percent(rate, 0)} false positives`)),
      ],
      rows: curves.map((c) => [
        name(c.method),
        decimal(c.auc, 3),
        ...READ_AT.map((rate) => percent(found(c, rate))),
      ]),
    }),
  ];
}

// What fits took, in seconds and megabytes, against the number of workers.
import { axisX, axisY, dot, gridX, gridY, line, type Markish, plot, type ScaleOptions } from "@observablehq/plot";
import { AXIS, COMMON, FAINT, NARROW, PAPER } from "../../chart-style";
import { roundTicks } from "../../curves";
import type { Cost, Scaling } from "../../generated";
import { el, name } from "../../dom";
import { figure, key } from "../../figure";
import { count, plain, significant } from "../../format";
import { lineSample, paint, styleOf } from "../../series";
import { number } from "../../table";

const BESIDE = 640; // pixels from which the charts stand beside each other
const GAP = 32;
const FAR = 50; // how many times the least the most must be for a logarithm
const THICK = 2.2;
const GRID = { stroke: FAINT, strokeOpacity: 1 };

type Measure = "seconds" | "megabytes";
const WORDS: Record<Measure, string> = { seconds: "seconds per iteration", megabytes: "megabytes" };

/** The scale upwards, its grid and its axis: from zero, or logarithmic where values lie far apart. */
function upwards(values: number[], words: string): { scale: ScaleOptions; marks: Markish[] } {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  if (!(least > 0 && most > FAR * least)) {
    return {
      scale: { domain: [0, most || 1], nice: 5 },
      marks: [
        gridY({ ...GRID, ticks: 5 }),
        axisY({ ...AXIS, ticks: 5, tickFormat: significant, label: words }),
      ],
    };
  }
  const [low, high] = [least / 1.25, most * 1.25];
  const ticks = roundTicks(low, high, high / low > 1000);
  return {
    scale: { type: "log", domain: [low, high] },
    marks: [gridY(ticks, GRID), axisY(ticks, { ...AXIS, text: significant, label: `${words} (logarithmic)` })],
  };
}

function drawCost(rows: Cost[], methods: string[], measure: Measure, width: number): Element {
  const workers = rows.map((r) => r.workers);
  const [low, high] = [Math.min(...workers) / 1.15, Math.max(...workers) * 1.15];
  const across = roundTicks(low, high, high / low > (width < NARROW ? 50 : 1000));
  const up = upwards(
    rows.map((r) => r[measure]),
    WORDS[measure],
  );
  const about = (r: Cost) =>
    `${plain(r.method)}, ${count(r.workers)} workers: ${significant(r[measure])} ${WORDS[measure]}`;
  const marks = methods.flatMap((method, i) => {
    const style = styleOf(i);
    const own = rows.filter((r) => r.method === method).sort((a, b) => a.workers - b.workers);
    const place = { x: "workers", y: measure } as const;
    return [
      line(own, { ...place, stroke: style.colour, strokeWidth: THICK, strokeDasharray: style.dash }),
      dot(own, { ...place, symbol: style.symbol, r: 4, stroke: PAPER, ...paint(style), title: about }),
    ];
  });
  return plot({
    ...COMMON,
    width,
    height: 300,
    marginLeft: 54,
    marginRight: 20,
    marginTop: 28,
    marginBottom: 50,
    x: { type: "log", domain: [low, high] },
    y: up.scale,
    marks: [
      gridX(across, GRID),
      axisX(across, { ...AXIS, text: count, label: "workers (logarithmic)" }),
      ...up.marks,
      ...marks,
    ],
  });
}

/** Both charts, as one picture. */
function drawBoth(rows: Cost[], methods: string[], width: number): Element {
  const each = width < BESIDE ? width : (width - GAP) / 2;
  const draw = (measure: Measure) => drawCost(rows, methods, measure, each);
  return el("div", { class: "both" }, draw("seconds"), draw("megabytes"));
}

export function draw({ headline, methods, rows }: Scaling): HTMLElement[] {
  return [
    figure({
      label: "Seconds per iteration and megabytes against the number of workers, one line per method",
      headline,
      key: key(...methods.map((m, i): [SVGElement, HTMLElement] => [lineSample(styleOf(i), THICK), name(m)])),
      draw: (width) => drawBoth(rows, methods, width),
      heads: [{ title: "Method" }, number("Workers"), number("Seconds per iteration"), number("Megabytes")],
      rows: rows.map((r) => [name(r.method), count(r.workers), significant(r.seconds), significant(r.megabytes)]),
    }),
  ];
}

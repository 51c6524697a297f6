// Methods compared with the truth: how often they succeed, and the distribution of their errors.
import { axisX, axisY, dot, gridX, gridY, line, plot } from "@observablehq/plot";
import { AXIS, COMMON, FAINT, NARROW, PAPER } from "../../chart-style";
import { roundTicks } from "../../curves";
import { asPercent, el, name, orDash } from "../../dom";
import { figure, key } from "../../figure";
import { count, percent, plain, significant } from "../../format";
import type { Method, Methods } from "../../generated";
import { lineSample, paint, styleOf } from "../../series";
import { number, table } from "../../table";

const FAR = 50; // how many times the least the most must be for a logarithm
const THICK = 2.2;
const SYMBOLS = 6; // on a line
const GRID = { stroke: FAINT, strokeOpacity: 1 };

/** A curve as steps: the share stays until the next error. */
function steps({ curve }: Method, from: number, to: number): [number, number][] {
  const first: [number, number] = [from, 0];
  const last = curve[curve.length - 1]![1];
  return [first, ...curve, [to, last]];
}

function drawErrors(methods: Method[], width: number): Element {
  const errors = methods.flatMap((m) => m.curve.map(([error]) => error));
  const [least, most] = [Math.min(...errors), Math.max(...errors)];
  const log = least > 0 && most > FAR * least;
  const [low, high] = log ? [least / 1.25, most * 1.25] : [Math.min(0, least), most * 1.05 || 1];
  const ticks = log ? roundTicks(low, high, high / low > 1000 || width < NARROW) : undefined;
  const axis = { ...AXIS, label: `average square error of the centres${log ? " (logarithmic)" : ""}` };
  const few = { ticks: width < NARROW ? 4 : 7 };
  const across = ticks
    ? [gridX(ticks, GRID), axisX(ticks, { ...axis, text: significant })]
    : [gridX({ ...GRID, ...few }), axisX({ ...axis, ...few, tickFormat: significant })];
  const lines = methods.flatMap((method, i) => {
    const style = styleOf(i);
    const about = ([error, share]: [number, number]) =>
      `${plain(method.method)}: ${percent(share, 0)} of the runs have at most ${significant(error)}`;
    const every = Math.max(1, Math.floor(method.curve.length / SYMBOLS));
    const some = method.curve.filter((_, n) => n % every === every - 1);
    const place = { x: "0", y: "1" } as const;
    return [
      line(steps(method, low, high), {
        ...place,
        curve: "step-after",
        stroke: style.colour,
        strokeWidth: THICK,
        strokeDasharray: style.dash,
      }),
      dot(some, { ...place, symbol: style.symbol, r: 4, stroke: PAPER, ...paint(style), title: about }),
    ];
  });
  return plot({
    ...COMMON,
    width,
    height: width < NARROW ? 280 : 340,
    marginLeft: 54,
    marginRight: 24,
    marginTop: 24,
    marginBottom: 50,
    x: log ? { type: "log", domain: [low, high] } : { domain: [low, high] },
    y: { domain: [0, 1] },
    marks: [
      gridY({ ...GRID, ticks: 5 }),
      ...across,
      axisY({ ...AXIS, ticks: 5, tickFormat: (v: number) => percent(v, 0), label: "share of the runs" }),
      ...lines,
    ],
  });
}

export function draw({ headline, rows }: Methods): HTMLElement[] {
  const numeric = ["Success", "Median ASE", "MAE of reliability", "Runs with an ASE"];
  const list = table(
    "Methods compared with the truth",
    [{ title: "Method" }, ...numeric.map(number)],
    rows.map((m) => [
      name(m.method),
      asPercent(m.success),
      orDash(m.median, significant),
      orDash(m.mae, (v) => v.toFixed(3)),
      count(m.runs),
    ]),
  );
  const drawn = rows.filter((m) => m.curve.length);
  if (!drawn.length) return [el("p", { class: "headline" }, headline), list];
  const at = [0.1, 0.25, 0.5, 0.75, 0.9];
  const read = (m: Method, share: number) => m.curve.find(([, s]) => s >= share)?.[0] ?? null;
  return [
    figure({
      label: "How the average square error of each method is spread over runs",
      headline,
      key: key(...drawn.map((m, i): [SVGElement, HTMLElement] => [lineSample(styleOf(i), THICK), name(m.method)])),
      draw: (width) => drawErrors(drawn, width),
      heads: [{ title: "Method" }, ...at.map((share) => number(`${percent(share, 0)} of the runs have at most`))],
      rows: drawn.map((m) => [name(m.method), ...at.map((share) => orDash(read(m, share), significant))]),
    }),
    list,
  ];
}

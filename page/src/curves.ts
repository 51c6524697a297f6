// Lines and scattered points, by Observable Plot.
import { areaY, axisX, axisY, dot, gridX, gridY, lineY, plot, text } from "@observablehq/plot";
import { AXIS, COMMON, COOL, FAINT, NARROW, PAPER, WARM } from "./chart-style";
import type { CurvePoint, WorkerTime } from "./generated";
import { count, percent, plain, plural, seconds } from "./format";

const PLAN_STYLES = [
  { stroke: COOL, dash: undefined, symbol: "circle" },
  { stroke: WARM, dash: "6 4", symbol: "square" },
  { stroke: "currentColor", dash: "2 3", symbol: "triangle" },
] as const;

const MIN_EXTENT = 0.01; // of accuracy, so that a flat line looks flat
const MARGIN = 0.15; // of the extent, above and below the lines

/** The part of the scale that the lines need; ranges may be far wider. */
function extentOf(values: number[]): [bottom: number, top: number] {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const extent = Math.max(high - low, MIN_EXTENT);
  const middle = (low + high) / 2;
  const half = (0.5 + MARGIN) * extent;
  return [Math.max(0, middle - half), Math.min(1, middle + half)];
}

export function drawCurve(points: CurvePoint[], width: number): Element {
  const plans = [...new Set(points.map((p) => p.plan))];
  const [bottom, top] = extentOf(points.map((p) => p.accuracy));
  const every = points.filter((p) => p.plan === plans[0]);
  const digits = top - bottom < 0.05 ? 1 : 0;
  const ticks = width < NARROW ? 4 : 7;
  const marks = plans.flatMap((plan, i) => {
    const style = PLAN_STYLES[i % PLAN_STYLES.length]!;
    const own = points.filter((p) => p.plan === plan);
    const above = plans.length === 1 || plan !== plans[0]; // answers where they help most bring more, so that line is above
    const about = (p: CurvePoint) =>
      `${p.plan}, ${plural(p.answers, "more answer")}: ${percent(p.accuracy)} (${percent(p.low)} to ${percent(p.high)})`;
    return [
      lineY(own, { x: "answers", y: "accuracy", stroke: style.stroke, strokeWidth: 2, strokeDasharray: style.dash }),
      dot(own, {
        x: "answers",
        y: "accuracy",
        symbol: style.symbol,
        r: 3.5,
        fill: style.stroke,
        stroke: PAPER,
        title: about,
      }),
      text(width < NARROW ? [] : own.slice(-1), {
        x: "answers",
        y: "accuracy",
        text: "plan",
        textAnchor: "end",
        dy: above ? -16 : 18,
        fill: "currentColor",
        stroke: PAPER,
        strokeWidth: 4,
        fontWeight: 600,
      }),
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
    y: { domain: [bottom, top] },
    marks: [
      areaY(every, { x: "answers", y1: "low", y2: "high", fill: COOL, fillOpacity: 0.1, clip: true }),
      gridY({ stroke: FAINT, strokeOpacity: 1 }),
      axisX({ ...AXIS, ticks, tickFormat: count, label: "answers added" }),
      axisY({ ...AXIS, tickFormat: (v: number) => percent(v, digits), label: "expected accuracy" }),
      ...marks,
    ],
  });
}

/** Round values (1, 2 and 5 times a power of ten) between two ends, for a logarithmic axis. */
export function roundTicks(low: number, high: number, sparse: boolean): number[] {
  const ticks: number[] = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
    for (const step of sparse ? [1] : [1, 2, 5]) ticks.push(Number(`${step}e${power}`));
  }
  const inside = ticks.filter((t) => t >= low && t <= high);
  return inside.length ? inside : [Number(low.toPrecision(2))];
}

export function drawTimes(rows: WorkerTime[], width: number): Element {
  const times = rows.map((r) => r[1]);
  const skills = rows.map((r) => r[2]);
  const low = Math.min(...times) / 1.25;
  const high = Math.max(...times) * 1.25;
  const about = (r: WorkerTime) => `${plain(r[0])}: ${seconds(r[1])}, skill ${percent(r[2])}${r[3] ? ", flagged" : ""}`;
  const place = { x: "1", y: "2", title: about } as const;
  const ticks = roundTicks(low, high, high / low > 1000 || (width < NARROW && high / low > 50));
  return plot({
    ...COMMON,
    width,
    height: width < NARROW ? 280 : 360,
    marginLeft: 54,
    marginTop: 24,
    marginBottom: 50,
    x: { type: "log", domain: [low, high] },
    y: { domain: [Math.floor(10 * Math.min(...skills)) / 10, Math.ceil(10 * Math.max(...skills)) / 10] },
    marks: [
      gridY({ stroke: FAINT, strokeOpacity: 1 }),
      gridX(ticks, { stroke: FAINT, strokeOpacity: 1 }),
      axisX(ticks, { ...AXIS, text: (v: number) => String(v), label: "median seconds per answer (logarithmic)" }),
      axisY({ ...AXIS, tickFormat: (v: number) => percent(v, 0), label: "skill" }),
      dot(
        rows.filter((r) => !r[3]),
        { ...place, r: 4, fill: COOL, fillOpacity: 0.7 },
      ),
      dot(
        rows.filter((r) => r[3]),
        { ...place, r: 4.5, symbol: "times", stroke: WARM, strokeWidth: 2.2 },
      ),
    ],
  });
}

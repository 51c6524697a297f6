// What each chart looks like, by Observable Plot. Colours are CSS variables, so that light and dark need no redrawing.
import {
  areaY,
  axisX,
  axisY,
  barX,
  dot,
  gridX,
  gridY,
  lineY,
  link,
  plot,
  rectY,
  ruleX,
  ruleY,
  text,
} from "@observablehq/plot";
import type { ClassShare, CurvePoint, Histogram, MixUp, TimeRow } from "./data";
import { count, percent, plain, seconds, short } from "./format";

const COOL = "var(--cool)";
const WARM = "var(--warm)";
const FAINT = "var(--faint)";
const PAPER = "var(--paper)";
const LETTER = 7.2; // pixels of a letter, about
const NARROW = 520;

// Plot puts a style into every chart; with one class name its text is always the same, and the page's policy allows it.
const COMMON = { className: "plot", style: { fontSize: "12px", fontFamily: "inherit" } } as const;
const AXIS = { tickSize: 0, labelArrow: "none" } as const;

/** Room at the left for names, and how many letters go into it. */
function nameRoom(names: string[], width: number): { marginLeft: number; letters: number } {
  const longest = Math.max(4, ...names.map((n) => Array.from(n).length));
  const marginLeft = Math.round(Math.min(longest * LETTER + 16, width * 0.4, 280));
  return { marginLeft, letters: Math.floor((marginLeft - 14) / LETTER) };
}

export function drawPrevalence(rows: ClassShare[], classes: string[], width: number): Element {
  const names = rows.map((r) => classes[r.label] ?? "");
  const { marginLeft, letters } = nameRoom(names, width);
  const most = Math.max(0.01, ...rows.map((r) => Math.max(r.votes, r.truth)));
  const wide = width >= NARROW;
  const about = (r: ClassShare) =>
    `${plain(classes[r.label] ?? "")}: ${percent(r.votes)} of the votes, ${percent(r.truth)} of the truth`;
  return plot({
    ...COMMON,
    width,
    height: rows.length * 30 + 58,
    marginLeft,
    marginRight: wide ? 128 : 20,
    marginTop: 8,
    marginBottom: 50,
    x: { domain: [0, most * 1.04] },
    y: { type: "point", domain: rows.map((r) => r.label), padding: 0.5 },
    marks: [
      gridX({ stroke: FAINT, strokeOpacity: 1, ticks: wide ? 8 : 4 }),
      axisX({
        ...AXIS,
        ticks: wide ? 8 : 4,
        tickFormat: (v: number) => percent(v, most < 0.1 ? 1 : 0),
        label: "share of all answers, and of all tasks",
      }),
      axisY({ ...AXIS, label: null, tickFormat: (label: number) => short(classes[label] ?? "", letters) }),
      link(rows, { x1: "votes", x2: "truth", y1: "label", y2: "label", stroke: "var(--muted)", strokeWidth: 1.5 }),
      dot(rows, { x: "votes", y: "label", r: 5, stroke: WARM, strokeWidth: 2, fill: PAPER, title: about }),
      dot(rows, { x: "truth", y: "label", r: 5.5, fill: COOL, title: about }),
      wide
        ? text(rows, {
            y: "label",
            frameAnchor: "right",
            textAnchor: "start",
            dx: 14,
            fill: "currentColor",
            fontVariant: "tabular-nums",
            text: (r: ClassShare) => `${percent(r.votes)} \u2192 ${percent(r.truth)}`,
          })
        : null,
    ],
  });
}

export function drawMixups(rows: MixUp[], classes: string[], width: number): Element {
  const pair = (r: MixUp) => [classes[r.truth] ?? "", classes[r.said] ?? ""] as const;
  const { marginLeft, letters } = nameRoom(
    rows.map((r) => pair(r).join(" told as ")),
    width,
  );
  const each = Math.max(3, Math.floor((letters - 3) / 2));
  const most = Math.max(...rows.map((r) => r.answers));
  return plot({
    ...COMMON,
    width,
    height: rows.length * 28 + 54,
    marginLeft,
    marginRight: 110,
    marginTop: 4,
    marginBottom: 50,
    x: { domain: [0, most] },
    y: { type: "band", domain: rows.map((_, i) => i), padding: 0.35 },
    marks: [
      axisX({ ...AXIS, ticks: Math.max(2, Math.round((width - marginLeft - 110) / 70)), label: "expected answers" }),
      axisY({
        ...AXIS,
        label: null,
        tickFormat: (i: number) => {
          const [truth, said] = pair(rows[i]!);
          const room = each + Math.max(0, each - Math.min(each, Array.from(truth).length, Array.from(said).length));
          return `${short(truth, room)} \u2192 ${short(said, room)}`;
        },
      }),
      barX(rows, {
        x: "answers",
        y: (_: MixUp, i: number) => i,
        fill: COOL,
        title: (r: MixUp) =>
          `${pair(r).map(plain).join(" told as ")}: ${count(r.answers)} answers, ${percent(r.share)}`,
      }),
      text(rows, {
        x: "answers",
        y: (_: MixUp, i: number) => i,
        text: (r: MixUp) => `${count(r.answers)} (${percent(r.share)})`,
        textAnchor: "start",
        dx: 6,
        fill: "currentColor",
        fontVariant: "tabular-nums",
      }),
      ruleX([0], { stroke: "var(--muted)" }),
    ],
  });
}

const PLAN_STYLES = [
  { stroke: COOL, dash: undefined, symbol: "circle" },
  { stroke: WARM, dash: "6 4", symbol: "square" },
  { stroke: "currentColor", dash: "2 3", symbol: "triangle" },
] as const;

export function drawCurve(points: CurvePoint[], width: number): Element {
  const plans = [...new Set(points.map((p) => p.plan))];
  const bottom = Math.min(...points.map((p) => p.low));
  const top = Math.max(...points.map((p) => p.high));
  const digits = top - bottom < 0.05 ? 1 : 0;
  const best = Math.max(...plans.map((plan) => points.filter((p) => p.plan === plan).at(-1)!.accuracy));
  const ticks = width < NARROW ? 4 : 7;
  const marks = plans.flatMap((plan, i) => {
    const style = PLAN_STYLES[i % PLAN_STYLES.length]!;
    const own = points.filter((p) => p.plan === plan);
    const above = own.at(-1)!.accuracy === best;
    const about = (p: CurvePoint) =>
      `${p.plan}, ${count(p.answers)} more answers: ${percent(p.accuracy)} (${percent(p.low)} to ${percent(p.high)})`;
    return [
      areaY(own, { x: "answers", y1: "low", y2: "high", fill: style.stroke, fillOpacity: 0.13 }),
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
      text(own.slice(-1), {
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
    x: { nice: true },
    y: { domain: [bottom, top], nice: true },
    marks: [
      gridY({ stroke: FAINT, strokeOpacity: 1 }),
      axisX({ ...AXIS, ticks, tickFormat: count, label: "answers added" }),
      axisY({ ...AXIS, tickFormat: (v: number) => percent(v, digits), label: "expected accuracy" }),
      ...marks,
    ],
  });
}

/** Round values (1, 2 and 5 times a power of ten) between two ends, for a logarithmic axis. */
function roundTicks(low: number, high: number, sparse: boolean): number[] {
  const ticks: number[] = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
    for (const step of sparse ? [1] : [1, 2, 5]) ticks.push(Number(`${step}e${power}`));
  }
  const inside = ticks.filter((t) => t >= low && t <= high);
  return inside.length ? inside : [Number(low.toPrecision(2))];
}

export function drawTimes(rows: TimeRow[], width: number): Element {
  const times = rows.map((r) => r[1]);
  const skills = rows.map((r) => r[2]);
  const low = Math.min(...times) / 1.25;
  const high = Math.max(...times) * 1.25;
  const about = (r: TimeRow) => `${plain(r[0])}: ${seconds(r[1])}, skill ${percent(r[2])}${r[3] ? ", flagged" : ""}`;
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
      axisX(ticks, { ...AXIS, tickFormat: (v: number) => String(v), label: "median seconds an answer (logarithmic)" }),
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

export function drawHistogram({ bins, unit }: Histogram, width: number): Element {
  // A bin without width (all values are one) still has to be seen.
  const wide = bins.map((b) => (b.high > b.low ? b : { ...b, low: b.low - 0.5, high: b.low + 0.5 }));
  const most = Math.max(1, ...bins.map((b) => b.count));
  const steps = Math.min(4, most); // things are counted: no halves
  return plot({
    ...COMMON,
    width,
    height: 210,
    marginLeft: 44,
    marginRight: 12,
    marginTop: 22,
    marginBottom: 48,
    x: { domain: [wide[0]!.low, wide[wide.length - 1]!.high] },
    y: { domain: [0, most], nice: steps },
    marks: [
      gridY({ ticks: steps, stroke: FAINT, strokeOpacity: 1 }),
      axisX({ ...AXIS, ticks: Math.max(3, Math.round(width / 80)), label: unit }),
      axisY({ ...AXIS, ticks: steps, tickFormat: count, label: "how many" }),
      rectY(wide, {
        x1: "low",
        x2: "high",
        y: "count",
        fill: COOL,
        insetLeft: 1,
        title: (b) => `${b.low} to ${b.high}: ${count(b.count)}`,
      }),
      ruleY([0], { stroke: "var(--muted)" }),
    ],
  });
}

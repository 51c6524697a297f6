// Dots and bars, by Observable Plot.
import { axisX, axisY, barX, dot, gridX, gridY, link, plot, rectY, ruleX, ruleY, text } from "@observablehq/plot";
import { AXIS, COMMON, COOL, FAINT, NARROW, PAPER, WARM } from "./chart-style";
import type { Bin, ClassShare, Histogram, MixUp } from "./generated";
import { count, percent, plain, plural, short } from "./format";

export const LETTER = 7.2; // pixels of a letter, about

/** Room at the left for names, and how many letters go into it. */
export function nameRoom(names: string[], width: number): { marginLeft: number; letters: number } {
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
    `class ${plain(classes[r.label] ?? "")}: ${percent(r.votes)} of the votes, ${percent(r.truth)} of the estimated truth`;
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
  const pair = (r: MixUp) => [classes[r.truth] ?? "", classes[r.given] ?? ""] as const;
  const { marginLeft, letters } = nameRoom(
    rows.map((r) => pair(r).join(" given as ")),
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
      axisX({ ...AXIS, ticks: Math.max(2, Math.round((width - marginLeft - 110) / 70)), label: "expected number of answers" }),
      axisY({
        ...AXIS,
        label: null,
        tickFormat: (i: number) => {
          const [truth, given] = pair(rows[i]!);
          const room = each + Math.max(0, each - Math.min(each, Array.from(truth).length, Array.from(given).length));
          return `${short(truth, room)} \u2192 ${short(given, room)}`;
        },
      }),
      barX(rows, {
        x: "answers",
        y: (_: MixUp, i: number) => i,
        fill: COOL,
        title: (r: MixUp) =>
          `true class ${pair(r).map(plain).join(", label given ")}: ${plural(r.answers, "expected answer")}, ${percent(r.share)} of those to this class`,
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

/** What a bin holds, in words: whole numbers up to the one before the next bin. */
export function binName({ whole }: Histogram, { low, high }: Bin): string {
  const short = (value: number) => String(Number(value.toPrecision(4)));
  if (whole && high - low <= 1) return short(low);
  return `${short(low)} to ${short(whole ? high - 1 : high)}`;
}

export function drawHistogram(histogram: Histogram, width: number): Element {
  const { bins, unit, whole } = histogram;
  // A bin without width (all values are one) still has to be seen; one whole number stands in the middle of its bin.
  const shift = whole ? 0.5 : 0;
  const names = bins.map((b) => binName(histogram, b));
  const wide = bins.map((b) =>
    b.high > b.low
      ? { ...b, low: b.low - shift, high: b.high - shift }
      : { ...b, low: b.low - 0.5, high: b.low + 0.5 },
  );
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
      axisX({
        ...AXIS,
        ticks: Math.max(3, Math.round(width / 80)),
        tickFormat: (v: number) => (whole && !Number.isInteger(v) ? "" : count(v)),
        label: unit,
      }),
      axisY({ ...AXIS, ticks: steps, tickFormat: count, label: `number of ${histogram.counted}` }),
      rectY(wide, {
        x1: "low",
        x2: "high",
        y: "count",
        fill: COOL,
        insetLeft: 1,
        title: (b, i) => `${names[i] ?? ""}: ${count(b.count)}`,
      }),
      ruleY([0], { stroke: "var(--muted)" }),
    ],
  });
}

// Workers by reliability, and the table.
import { axisX, axisY, dot, gridX, gridY, plot, ruleX, ruleY } from "@observablehq/plot";
import { nameRoom } from "../../charts";
import { AXIS, COMMON, COOL, FAINT, NARROW, PAPER } from "../../chart-style";
import { asCount, asPercent, el, name, orDash } from "../../dom";
import { figure } from "../../figure";
import { count, percent, plain, short, significant } from "../../format";
import { type Column, column as of, filled, ledger } from "../../ledger";
import type { PointsWorker, PointsWorkers } from "../../generated";
import { number } from "../../table";
import { interval, shareCell, stripScale } from "../../worker-columns";

const NAMED = 40; // workers up to which each has a line with a name
const GRID = { stroke: FAINT, strokeOpacity: 1 };

type Ranked = PointsWorker & { rank: number; reliability: number };
const isRanked = (row: PointsWorker): row is Ranked => row.rank !== null && row.reliability !== null;

const words = (row: Ranked): string => {
  const range = interval(row);
  return `${row.rank}. ${plain(row.worker)}: ${percent(row.reliability)}${range ? ` (${range})` : ""}`;
};
const low = (row: Ranked): number => row.low ?? row.reliability;
const high = (row: Ranked): number => row.high ?? row.reliability;
const whole = (v: number) => percent(v, 0);
const RANGE = { stroke: COOL, strokeWidth: 3, strokeOpacity: 0.45, strokeLinecap: "round" } as const;

/** A line a worker, with names. */
function drawNamed(rows: Ranked[], width: number): Element {
  const { marginLeft, letters } = nameRoom(
    rows.map((r) => r.worker),
    width,
  );
  return plot({
    ...COMMON,
    width,
    height: rows.length * 22 + 60,
    marginLeft,
    marginRight: 20,
    marginTop: 8,
    marginBottom: 50,
    x: { domain: [0, 1] },
    y: { type: "point", domain: rows.map((r) => r.rank), padding: 0.5 },
    marks: [
      gridX({ ...GRID, ticks: 5 }),
      axisX({ ...AXIS, ticks: 5, tickFormat: whole, label: "reliability" }),
      axisY({ ...AXIS, label: null, tickFormat: (_: number, i: number) => short(rows[i]?.worker ?? "", letters) }),
      ruleY(rows, { y: "rank", x1: low, x2: high, ...RANGE }),
      dot(rows, { x: "reliability", y: "rank", r: 4.5, fill: COOL, stroke: PAPER, title: words }),
    ],
  });
}

/** Very many workers, side by side. */
function drawMany(rows: Ranked[], width: number): Element {
  const thin = width / rows.length < 6;
  const place = { x: "rank", y: "reliability" } as const;
  return plot({
    ...COMMON,
    width,
    height: width < NARROW ? 260 : 320,
    marginLeft: 54,
    marginRight: 20,
    marginTop: 24,
    marginBottom: 50,
    x: { domain: [0.5, Math.max(...rows.map((r) => r.rank)) + 0.5] },
    y: { domain: [0, 1] },
    marks: [
      gridY({ ...GRID, ticks: 5 }),
      axisX({ ...AXIS, ticks: width < NARROW ? 4 : 8, tickFormat: count, label: "rank" }),
      axisY({ ...AXIS, ticks: 5, tickFormat: whole, label: "reliability" }),
      ruleX(rows, { x: "rank", y1: low, y2: high, ...RANGE, strokeWidth: thin ? 1.2 : 3 }),
      dot(rows, { ...place, r: thin ? 2 : 3.5, fill: COOL, stroke: thin ? undefined : PAPER, title: words }),
    ],
  });
}

const column = of<PointsWorker>;
const COLUMNS: Column<PointsWorker>[] = [
  column({
    title: "Rank",
    help: "By the lower end of the reliability interval",
    downFirst: false,
    value: (r) => r.rank,
    cell: (r) => asCount(r.rank),
  }),
  column({
    title: "Worker",
    help: "Name of the worker",
    numeric: false,
    downFirst: false,
    names: true,
    value: (r) => r.worker,
    cell: (r) => name(r.worker),
  }),
  column({ title: "Images", help: "Images looked at", value: (r) => r.images, cell: (r) => asCount(r.images) }),
  column({ title: "Clicks", help: "Clicks made", value: (r) => r.clicks, cell: (r) => asCount(r.clicks) }),
  column({
    title: "Reliability",
    help: "Share of the clicks that are on objects, with its 95\u202f% interval",
    numeric: false,
    phone: "strip",
    scale: () => stripScale(null),
    value: (r) => r.reliability,
    cell: (r) => shareCell(r.reliability, r.low, r.high),
  }),
  column({
    title: "Hit rate",
    help: "Share of the objects in these images that the worker clicked, with its 95\u202f% interval",
    numeric: false,
    scale: () => stripScale(null),
    value: (r) => r.hit_rate,
    cell: (r) => shareCell(r.hit_rate, r.hit_low, r.hit_high),
  }),
  column({
    title: "Noise",
    help: "How far the worker's clicks scatter around objects, relative to other workers: 1 is typical",
    value: (r) => r.spread,
    cell: (r) => orDash(r.spread, significant),
  }),
];

export function draw({ headline, rows, total }: PointsWorkers): HTMLElement[] {
  const ranked = rows.filter(isRanked);
  const chart = ranked.length
    ? figure({
        label: "Reliability of the workers with its interval, by rank",
        headline,
        draw: (width) => (ranked.length <= NAMED ? drawNamed : drawMany)(ranked, width),
        heads: [{ title: "Worker" }, number("Rank"), number("Reliability"), number("Low"), number("High")],
        rows: ranked.map((r) => [
          name(r.worker),
          count(r.rank),
          percent(r.reliability),
          asPercent(r.low),
          asPercent(r.high),
        ]),
      })
    : el("p", { class: "headline" }, headline);
  const list = ledger<PointsWorker>({
    what: "worker",
    rows,
    total,
    columns: filled(COLUMNS, rows, new Set(["Worker", "Images", "Clicks"])),
    search: { hint: "Name", texts: (row) => [row.worker] },
  });
  return [chart, ...list.parts];
}

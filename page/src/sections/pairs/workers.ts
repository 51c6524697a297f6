// Workers by weight, and the table.
import { axisX, axisY, barX, barY, gridX, gridY, plot, ruleX, ruleY } from "@observablehq/plot";
import { nameRoom } from "../../charts";
import { AXIS, COMMON, COOL, FAINT, NARROW, WARM } from "../../chart-style";
import { asCount, asDecimal, el, name, orDash } from "../../dom";
import { figure } from "../../figure";
import { count, decimal, plain, short } from "../../format";
import { type Column, column as of, filled, ledger } from "../../ledger";
import type { PairsWorker, PairsWorkers } from "../../generated";
import { number } from "../../table";
import { shareCell, stripScale } from "../../worker-columns";

const MOST = 60; // workers in the chart
const GAP = 0; // no rank
const NAMED = 25; // up to which each has a line with a name
const GRID = { stroke: FAINT, strokeOpacity: 1 };
const CHANCE = 0.5; // skill of a worker who guesses
const LABEL = "weight of an answer, in log-odds";

type Weighed = PairsWorker & { weight: number };
const isWeighed = (row: PairsWorker): row is Weighed => row.weight !== null;

const words = (row: Weighed): string => `${count(row.rank)}. ${plain(row.worker)}: ${decimal(row.weight)}`;
const fill = ({ weight }: Weighed): string => (weight < 0 ? WARM : COOL);

/** From 0, with all weights. */
function domain(rows: Weighed[]): [number, number] {
  const weights = rows.map((r) => r.weight);
  const [low, high] = [Math.min(0, ...weights), Math.max(0, ...weights)];
  return low === high ? [0, 1] : [low, high];
}

function drawNamed(rows: Weighed[], width: number): Element {
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
    x: { domain: domain(rows), nice: true },
    y: { type: "band", domain: rows.map((r) => r.rank), padding: 0.35 },
    marks: [
      gridX({ ...GRID, ticks: 5 }),
      axisX({ ...AXIS, ticks: 5, tickFormat: (v: number) => decimal(v, 1), label: LABEL }),
      axisY({ ...AXIS, label: null, tickFormat: (_: number, i: number) => short(rows[i]?.worker ?? "", letters) }),
      barX(rows, { x: "weight", y: "rank", fill, title: words }),
      ruleX([0], { stroke: "var(--muted)" }),
    ],
  });
}

/** Ranks in their order, with a gap where some are left out. */
function ranksOf(rows: Weighed[]): number[] {
  return rows.flatMap(({ rank }, i) => (i && rank > rows[i - 1]!.rank + 1 ? [GAP, rank] : [rank]));
}

/** Many workers, side by side. */
function drawMany(rows: Weighed[], width: number): Element {
  const ranks = ranksOf(rows);
  const every = Math.ceil(rows.length / (width < NARROW ? 6 : 12));
  const named = (rank: number, i: number) => rank === GAP || (i % every === 0 && !ranks.slice(i, i + 3).includes(GAP));
  return plot({
    ...COMMON,
    width,
    height: width < NARROW ? 240 : 300,
    marginLeft: 44,
    marginRight: 12,
    marginTop: 28,
    marginBottom: 50,
    x: { type: "band", domain: ranks, padding: 0.25 },
    y: { domain: domain(rows), nice: true },
    marks: [
      gridY({ ...GRID, ticks: 5 }),
      axisX({
        ...AXIS,
        ticks: ranks.filter(named),
        tickFormat: (rank: number) => (rank === GAP ? "\u2026" : count(rank)),
        label: "rank",
        labelOffset: 40,
      }),
      axisY({ ...AXIS, ticks: 5, tickFormat: (v: number) => decimal(v, 1), label: LABEL }),
      barY(rows, { x: "rank", y: "weight", fill, title: words }),
      ruleY([0], { stroke: "var(--muted)" }),
    ],
  });
}

const column = of<PairsWorker>;
const COLUMNS: Column<PairsWorker>[] = [
  column({
    title: "Rank",
    help: "By the lower end of the skill interval",
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
  column({ title: "Answers", help: "Answers given", value: (r) => r.answers, cell: (r) => asCount(r.answers) }),
  column({
    title: "Counted",
    help: "Effective number of answers: answers from one job depend on each other",
    value: (r) => r.counted,
    cell: (r) => orDash(r.counted, count),
  }),
  column({
    title: "Weight",
    help: "Log-odds by which one answer separates \"same\" from \"different\"",
    value: (r) => r.weight,
    cell: (r) => asDecimal(r.weight),
  }),
  column({
    title: "Skill",
    help: "Mean of sensitivity and specificity, with its 95\u202f% interval. Guessing would reach 50\u202f%",
    numeric: false,
    phone: "strip",
    scale: () => stripScale(CHANCE),
    value: (r) => r.skill,
    cell: (r) => shareCell(r.skill, r.low, r.high, CHANCE),
  }),
  column({
    title: "Sensitivity",
    help: "Probability that the worker answers \"same\" when the items are the same, with its 95\u202f% interval",
    numeric: false,
    scale: () => stripScale(null),
    value: (r) => r.sensitivity,
    cell: (r) => shareCell(r.sensitivity, r.sensitivity_low, r.sensitivity_high),
  }),
  column({
    title: "Specificity",
    help: "Probability that the worker answers \"different\" when the items differ, with its 95\u202f% interval",
    numeric: false,
    scale: () => stripScale(null),
    value: (r) => r.specificity,
    cell: (r) => shareCell(r.specificity, r.specificity_low, r.specificity_high),
  }),
];

/** The workers of the chart: all, or the first and the last of many. */
function charted(rows: Weighed[]): Weighed[] {
  return rows.length <= MOST ? rows : [...rows.slice(0, MOST / 2), ...rows.slice(-MOST / 2)];
}

export function draw({ headline, rows, total }: PairsWorkers): HTMLElement[] {
  const shown = charted(rows.filter(isWeighed));
  const cut = total > MOST && el("p", { class: "note" }, `The ${MOST / 2} best and the ${MOST / 2} worst workers.`);
  const chart = shown.length
    ? figure({
        label: "Weight of each worker, by rank",
        headline,
        draw: (width) => (shown.length <= NAMED ? drawNamed : drawMany)(shown, width),
        heads: [{ title: "Worker" }, number("Rank"), number("Weight")],
        rows: shown.map((r) => [name(r.worker), count(r.rank), decimal(r.weight)]),
      })
    : el("p", { class: "headline" }, headline);
  const list = ledger<PairsWorker>({
    what: "worker",
    rows,
    total,
    columns: filled(COLUMNS, rows, new Set(["Worker", "Answers"])),
    search: { hint: "Name", texts: (row) => [row.worker] },
  });
  return [chart, ...(cut ? [cut] : []), ...list.parts];
}

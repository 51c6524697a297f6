// The columns of the table of workers; those that nobody has a value for are left out.
import type { WorkerRow } from "./generated";
import { asCount, asDecimal, asPercent, type Child, el, name, svg, told, unknown } from "./dom";
import { count, percent, seconds } from "./format";
import { type Column, column as of, filled } from "./ledger";

const SPAN = 80; // pixels from skill 0 to skill 1

/** Skill as a dot in its interval, on a line from 0 to 1. */
export function skillPicture({ skill, low, high }: Pick<WorkerRow, "skill" | "low" | "high">): SVGElement | null {
  if (skill === null) return null;
  const at = (value: number) => (4 + SPAN * Math.min(1, Math.max(0, value))).toFixed(1);
  const line = (className: string, from: number, to: number) =>
    svg("line", { class: className, x1: at(from), x2: at(to), y1: 8, y2: 8 });
  return svg(
    "svg",
    { class: "interval", width: SPAN + 8, height: 16, viewBox: `0 0 ${SPAN + 8} 16`, "aria-hidden": "true" },
    line("scale", 0, 1),
    low !== null && high !== null && line("range", low, high),
    svg("circle", { class: "point", cx: at(skill), cy: 8, r: 4 }),
  );
}

export function interval({ low, high }: Pick<WorkerRow, "low" | "high">): string | null {
  return low === null || high === null ? null : `${(100 * low).toFixed(1)}\u2013${percent(high)}`;
}

/** A share as a picture, a number and its interval. */
export function shareCell(skill: number | null, low: number | null, high: number | null): Child {
  if (skill === null) return unknown();
  const range = interval({ low, high });
  return el(
    "div",
    { class: "skill" },
    skillPicture({ skill, low, high }),
    el("span", { class: "value" }, percent(skill)),
    range && el("small", {}, range),
  );
}

/** Flags as chips. Their reasons stand in the details, and in the title here. */
export function flagChips(row: WorkerRow): Child {
  const aligned = row.flags.length === row.reasons.length;
  const chips = row.flags.map((flag, i) =>
    el("span", { class: "flag", title: aligned ? row.reasons[i] : row.reasons.join("; ") }, `\u2691 ${flag}`),
  );
  const odd = row.status !== "ok" && el("span", { class: "flag quiet" }, `\u25cb ${row.status}`);
  return el("div", { class: "chips" }, ...chips, odd);
}

function checkCell(row: WorkerRow): Child {
  if (row.check_score === null) return row.checks ? `of ${count(row.checks)}` : unknown();
  return el("span", {}, percent(row.check_score), " ", el("small", {}, `of ${count(row.checks)}`));
}

const column = of<WorkerRow>;

const ALL: Column<WorkerRow>[] = [
  column({
    title: "Rank",
    help: "By the lower end of skill, the best first",
    downFirst: false,
    value: (r) => r.rank,
    cell: (r) => asCount(r.rank),
  }),
  column({
    title: "Worker",
    help: "Choose one to see more",
    numeric: false,
    downFirst: false,
    names: true,
    value: (r) => r.worker,
    cell: (r) => name(r.worker),
  }),
  column({
    title: "Flags",
    help: "What makes a worker worth a look",
    numeric: false,
    value: (r) => r.flags.length,
    cell: flagChips,
  }),
  column({ title: "Answers", help: "Answers given", value: (r) => r.answers, cell: (r) => asCount(r.answers) }),
  column({
    title: "Skill",
    help: "Chance of a right answer, with its interval",
    numeric: false,
    value: (r) => r.skill,
    cell: (r) => shareCell(r.skill, r.low, r.high),
  }),
  column({
    title: "Spam score",
    help: "0: answers whatever the truth is; 1: answers give the truth away",
    value: (r) => r.spam_score,
    cell: (r) => asDecimal(r.spam_score),
  }),
  column({
    title: "Trace",
    help: "Mean of the diagonal of the confusion matrix",
    value: (r) => r.trace,
    cell: (r) => asDecimal(r.trace),
  }),
  column({
    title: "Checks",
    help: "Right answers to tasks with gold",
    value: (r) => r.check_score ?? (r.checks ? 0 : null),
    cell: checkCell,
  }),
  column({
    title: "Agreement",
    help: "How often others gave the same answer",
    value: (r) => r.agreement,
    cell: (r) => asPercent(r.agreement),
  }),
  column({
    title: "Seconds",
    help: "Median time of an answer",
    value: (r) => r.seconds,
    cell: (r) => told(r.seconds, seconds),
  }),
];

const ALWAYS = new Set(["Worker", "Answers", "Flags"]);

export function columnsOf(rows: WorkerRow[]): Column<WorkerRow>[] {
  return filled(ALL, rows, ALWAYS);
}

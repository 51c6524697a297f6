// The columns of the table of workers; those without any value are omitted.
import type { WorkerRow, Workers } from "./generated";
import { asCount, asDecimal, asPercent, type Child, el, name, svg, orDash, unknown } from "./dom";
import { count, percent, seconds } from "./format";
import { type Column, column as of, filled } from "./ledger";

/** Places of a strip, in percent of its width: all strips of a column have one scale. */
const at = (value: number): string => `${(100 * Math.min(1, Math.max(0, value))).toFixed(2)}%`;

/** A share as a dot in its interval, on a line from 0 to 100 %; a dashed mark is the chance level. */
function strip(share: number, low: number | null, high: number | null, chance: number | null): SVGElement {
  const across = (className: string, from: number, to: number) =>
    svg("line", { class: className, x1: at(from), x2: at(to), y1: 8, y2: 8 });
  const mark = (className: string, place: number, from: number, to: number) =>
    svg("line", { class: className, x1: at(place), x2: at(place), y1: from, y2: to });
  return svg(
    "svg",
    { class: "interval", width: "100%", height: 16, "aria-hidden": "true" },
    across("scale", 0, 1),
    ...[0, 0.5, 1].map((place) => mark("scale", place, 4, 12)),
    chance !== null && mark("chance", chance, 0, 16),
    low !== null && high !== null && across("range", low, high),
    svg("circle", { class: "point", cx: at(share), cy: 8, r: 4.5 }),
  );
}

/** The share 1/K of right answers by guessing one of K classes. */
const fraction = (chance: number): string => `1/${count(Math.round(1 / chance))}`;

/** The scale of the strips below it: 0, 50 and 100 %, and what guessing would reach, where that is known. */
export function stripScale(chance: number | null): HTMLElement {
  const ticks = [0, 0.5, 1].map((value) => el("span", { class: "tick" }, percent(value, 0)));
  const guess = chance !== null && el("span", { class: "guess" }, `guessing: ${fraction(chance)}`);
  if (guess) guess.style.left = at(chance);
  return el("div", { class: "strip-scale", "aria-hidden": "true" }, guess, el("div", { class: "ticks" }, ...ticks));
}

export function interval({ low, high }: Pick<WorkerRow, "low" | "high">): string | null {
  return low === null || high === null ? null : `${(100 * low).toFixed(1)}\u2013${percent(high)}`;
}

/** A share as a strip, a number and its interval. */
export function shareCell(
  share: number | null,
  low: number | null,
  high: number | null,
  chance: number | null = null,
): Child {
  if (share === null) return unknown();
  const range = interval({ low, high });
  return el(
    "div",
    { class: "skill" },
    strip(share, low, high, chance),
    el("span", { class: "value" }, percent(share)),
    " ",
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

const allColumns = (chance: number | null): Column<WorkerRow>[] => [
  column({
    title: "Rank",
    help: "By the lower end of the skill interval",
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
    help: "Reasons to look at this worker's answers",
    numeric: false,
    phone: "line",
    value: (r) => (r.flags.length || r.status !== "ok" ? r.flags.length : null),
    cell: flagChips,
  }),
  column({ title: "Answers", help: "Answers given", value: (r) => r.answers, cell: (r) => asCount(r.answers) }),
  column({
    title: "Skill",
    help:
      "Probability of a right answer, with its 95\u202f% interval" +
      (chance === null ? "" : `. Uniform guessing is right in ${fraction(chance)} of the answers`),
    numeric: false,
    phone: "strip",
    scale: () => stripScale(chance),
    value: (r) => r.skill,
    cell: (r) => shareCell(r.skill, r.low, r.high, chance),
  }),
  column({
    title: "Spam score",
    help: "0: the answers do not depend on the truth. 1: the answers reveal the truth",
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
    help: "Share of right answers to tasks with a known label",
    value: (r) => r.check_score ?? (r.checks ? 0 : null),
    cell: checkCell,
  }),
  column({
    title: "Agreement",
    help: "How often other workers gave the same answer",
    value: (r) => r.agreement,
    cell: (r) => asPercent(r.agreement),
  }),
  column({
    title: "Seconds",
    help: "Median time per answer",
    value: (r) => r.seconds,
    cell: (r) => orDash(r.seconds, seconds),
  }),
];

const ALWAYS = new Set(["Worker", "Answers"]);

/** The columns that these workers fill. */
export function columnsOf({ rows, guessing }: Pick<Workers, "rows" | "guessing">): Column<WorkerRow>[] {
  return filled(allColumns(guessing), rows, ALWAYS);
}

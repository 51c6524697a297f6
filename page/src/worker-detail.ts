// What is shown when a worker is chosen.
import { confusionTable } from "./confusion";
import type { WorkerRow } from "./generated";
import { type Child, chip, el, name, sentence } from "./dom";
import { percent, plural } from "./format";
import { table } from "./table";
import { interval } from "./worker-columns";

const WIDE = 7; // with more classes than these a matrix takes the whole width

function facts(row: WorkerRow, classes: string[]): HTMLElement {
  const range = interval(row);
  const lines: Child[][] = [[plural(row.answers, "answer")]];
  if (row.skill !== null) lines.push([`skill ${percent(row.skill)}`, range && ` (${range})`]);
  if (row.check_score !== null) lines.push([`${percent(row.check_score)} right in ${plural(row.checks, "check")}`]);
  if (row.overuses !== null) {
    const given = row.overused ?? 0;
    const expected = Math.max(0, given - (row.overuse ?? 0));
    const shares = ` for ${percent(given, 0)} of their answers; ${percent(expected, 0)} expected`;
    lines.push(["gives label ", chip(classes[row.overuses] ?? ""), shares]);
  }
  if (row.status !== "ok") lines.push([row.status]);
  return el("ul", { class: "facts-line" }, ...lines.map((parts) => el("li", {}, ...parts)));
}

function reasons(row: WorkerRow): HTMLElement {
  if (!row.flags.length && !row.reasons.length) return sentence("Nothing about this worker is flagged.");
  const texts = row.reasons.length ? row.reasons : row.flags;
  return el("ul", { class: "reasons" }, ...texts.map((text) => el("li", {}, `\u2691 ${text}`)));
}

function surprises(row: WorkerRow, classes: string[]): HTMLElement {
  if (!row.surprises.length) return sentence("No answer of this worker stands out.");
  const heads = [
    { title: "Task" },
    { title: "Label given" },
    { title: "Estimated label" },
    { title: "Probability of the estimated label", numeric: true },
  ];
  const lines = row.surprises.map((s) => [
    name(s.task),
    chip(classes[s.given] ?? ""),
    chip(classes[s.label] ?? ""),
    percent(s.probability),
  ]);
  return table("Most surprising answers", heads, lines);
}

export function workerDetail(row: WorkerRow, classes: string[]): HTMLElement[] {
  const total = row.confusion.reduce((sum, [, , answers]) => sum + answers, 0);
  return [
    el("h3", {}, "Worker ", name(row.worker)),
    facts(row, classes),
    el(
      "div",
      { class: classes.length > WIDE ? "columns wide" : "columns" },
      el(
        "div",
        {},
        el("h4", {}, "Confusion"),
        confusionTable(row.confusion, classes, "Confusion matrix of this worker"),
        total > 0 &&
          el(
            "p",
            { class: "note" },
            `${plural(Math.round(total), "answer")}. Rows: estimated true class. Columns: label given by the worker. ` +
              "Outlined cells are right answers.",
          ),
      ),
      el(
        "div",
        {},
        el("h4", {}, "Flags"),
        reasons(row),
        el("h4", {}, "Most surprising answers"),
        surprises(row, classes),
      ),
    ),
  ];
}

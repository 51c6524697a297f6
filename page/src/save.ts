// The list of tasks as a CSV file, made in the browser.
import type { TaskRow } from "./generated";
import { el } from "./dom";

type Value = string | number | boolean | null;

/** A text cell that a spreadsheet could take for a formula gets an apostrophe; numbers stay numbers. */
function cell(value: Value): string {
  if (value === null) return "";
  if (typeof value !== "string") return String(value);
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
}

export function csv(rows: Value[][]): string {
  return rows.map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}

const HEAD = [
  "task",
  "label",
  "probability",
  "status",
  "tie",
  "answers",
  "entropy",
  "vote_entropy",
  "disagreement",
  "difficulty",
  "gain",
];

export function tasksCsv(rows: TaskRow[], classes: string[]): string {
  const texts = rows.some((r) => r.text !== null);
  const lines = rows.map((r): Value[] => [
    r.task,
    r.label === null ? null : (classes[r.label] ?? null),
    r.probability,
    r.status,
    r.tie,
    r.answers,
    r.entropy,
    r.vote_entropy,
    r.disagreement,
    r.difficulty,
    r.gain,
    ...(texts ? [r.text] : []),
  ]);
  return csv([texts ? [...HEAD, "text"] : HEAD, ...lines]);
}

export function saveTasks(rows: TaskRow[], classes: string[]): void {
  const file = new Blob([tasksCsv(rows, classes)], { type: "text/csv;charset=utf-8" });
  const url = URL.createObjectURL(file);
  const link = el("a", { href: url, download: "tasks-to-review.csv" });
  document.body.append(link);
  link.click();
  link.remove();
  window.setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

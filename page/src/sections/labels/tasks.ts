// Tasks worth another look, most uncertain first.
import type { Shared, TaskRow, Tasks, Vote } from "../../generated";
import { aside, button, type Child, chip, el, name, passage, sentence, svg, unknown } from "../../dom";
import { key, sample } from "../../figure";
import { count, decimal, percent, plain, plural } from "../../format";
import { saveTasks } from "../../save";
import { walk } from "../../walk";

const FIRST = 10; // tasks shown at first
const STEP = 40; // and by each "show more"
const VOTE_KEY: [dash: string | undefined, mark: string, words: string][] = [
  [undefined, "mark-cool", "vote for the estimated label"],
  ["4 3", "mark-warm", "vote for another label"],
];
const TOP = 6; // classes of a posterior that are shown one by one

/** A bar from 0 to 1. Its length is set by script: the page's policy allows no style attributes. */
function bar(share: number): HTMLElement {
  const full = el("span", { class: "full" });
  full.style.width = `${(100 * Math.min(1, Math.max(0, share))).toFixed(1)}%`;
  return el("span", { class: "bar", "aria-hidden": "true" }, full);
}

function posterior(row: TaskRow, classes: string[]): HTMLElement {
  if (!row.posterior.length) return sentence("The probabilities of the classes are not known.");
  // One class left over is better shown than summed.
  const top = row.posterior.slice(0, row.posterior.length === TOP + 1 ? TOP + 1 : TOP);
  const listed = top.reduce((sum, [, p]) => sum + p, 0);
  const others = Math.max(classes.length, row.posterior.length) - top.length;
  const lines = top.map(([label, p]) =>
    el(
      "li",
      {},
      el("span", {}, chip(classes[label] ?? "")),
      aside(", probability "),
      bar(p),
      el("span", { class: "value" }, percent(p)),
    ),
  );
  const rest =
    others > 0 &&
    el(
      "li",
      { class: "rest" },
      el("span", {}, plural(others, "other class", "other classes")),
      aside(", probability "),
      bar(1 - listed),
      el("span", { class: "value" }, percent(Math.max(0, 1 - listed))),
    );
  return el("ul", { class: "posterior" }, ...lines, rest);
}

function voteItem({ worker, skill }: Vote): HTMLElement {
  const words = skill === null ? "skill not known" : `skill ${percent(skill)}`;
  return el(
    "li",
    { class: "vote", title: `${plain(worker)}, ${words}` },
    el("bdi", { class: "worker" }, worker),
    aside(", skill "),
    skill !== null && bar(skill),
    el("span", { class: "value" }, skill === null ? unknown() : percent(skill)),
  );
}

/** The workers who gave one label. */
function voteGroup(label: number, given: Vote[], row: TaskRow, classes: string[]): HTMLElement {
  const agrees = label === row.label;
  return el(
    "div",
    { class: agrees ? "vote-group" : "vote-group other" },
    el("p", { class: "vote-head" }, chip(classes[label] ?? ""), aside(": "), " ", plural(given.length, "vote")),
    el("ul", { class: "votes" }, ...given.map(voteItem)),
  );
}

/** What the lines and the bars beside votes mean. */
function voteKey(): HTMLElement {
  const entries = VOTE_KEY.map(([dash, mark, words]): [SVGElement, string] => [
    sample(
      24,
      svg("path", { d: "M2 0v14", class: `${mark} hollow`, "stroke-dasharray": dash }),
      svg("rect", { x: 8, y: 4, width: 14, height: 6, class: `${mark} full` }),
    ),
    words,
  ]);
  return key(...entries);
}

/** Votes by label, those for the estimated label first. */
function votes(row: TaskRow, classes: string[]): HTMLElement {
  if (!row.votes.length) return sentence("This task has no answers.");
  const other = (label: number) => Number(label !== row.label);
  const labels = [...new Set(row.votes.map((vote) => vote.label))].sort((a, b) => other(a) - other(b) || a - b);
  const groups = labels.map((label) =>
    voteGroup(
      label,
      row.votes.filter((vote) => vote.label === label),
      row,
      classes,
    ),
  );
  const more = row.more_votes > 0 && el("p", { class: "note" }, `and ${plural(row.more_votes, "more answer")}`);
  return el("div", {}, ...groups, more);
}

function facts(row: TaskRow): string {
  const parts: [number | null, (v: number) => string][] = [
    [row.answers, (v) => plural(v, "answer")],
    [row.entropy, (v) => `entropy ${decimal(v)}`],
    [row.vote_entropy, (v) => `entropy of votes ${decimal(v)}`],
    [row.disagreement, (v) => `disagreement ${decimal(v)}`],
    [row.difficulty, (v) => `difficulty ${decimal(v)}`],
    [row.gain, (v) => `gain from one more answer ${(100 * v).toFixed(1)} points`],
  ];
  return parts.flatMap(([value, words]) => (value === null ? [] : [words(value)])).join(" \u00b7 ");
}

/** The picture of a task, with its text below. */
function pictured({ task, text }: TaskRow, picture: string): HTMLElement {
  const shown = el("img", { src: picture, alt: `Picture of task ${plain(task)}` });
  return el("div", { class: "about" }, shown, text !== null && passage(text));
}

function card(row: TaskRow, position: number, classes: string[]): HTMLElement {
  const states: Child[] = [
    row.tie && el("span", { class: "flag" }, "\u2248 tie"),
    row.status !== "ok" && el("span", { class: "flag quiet" }, `\u25cb ${row.status}`),
  ];
  const verdict = row.label === null ? unknown() : chip(classes[row.label] ?? "");
  const sure = row.probability !== null && el("span", { class: "sure" }, `probability ${percent(row.probability)}`);
  return el(
    "article",
    { class: "task", tabindex: -1, "aria-label": `Task ${plain(row.task)}` },
    el(
      "div",
      { class: "head" },
      el("h3", {}, el("span", { class: "position" }, `${count(position)}.`), " Task ", name(row.task), ...states),
      el("p", { class: "verdict" }, aside("Estimated label: "), verdict, sure && aside(","), " ", sure),
    ),
    el("p", { class: "note" }, facts(row)),
    row.picture === null && row.text !== null && el("div", { class: "about" }, passage(row.text)),
    el(
      "div",
      { class: "columns" },
      row.picture !== null && pictured(row, row.picture),
      el("div", {}, el("h4", {}, "Probability of each class"), posterior(row, classes)),
      el("div", {}, el("h4", {}, "Votes, with the skill of each worker"), votes(row, classes)),
    ),
  );
}

export function draw({ headline, notes, rows, total }: Tasks, { classes }: Shared): HTMLElement[] {
  const intro = el("p", { class: "headline" }, headline);
  const list = el("div", { class: "tasks" });
  const status = el("p", { class: "status", role: "status" });
  const more = button("more", "", () => showMore());

  /** Shows some more; false when there are none. */
  function showMore(): boolean {
    const from = list.childElementCount;
    const next = rows.slice(from, from + (from ? STEP : FIRST));
    list.append(...next.map((row, i) => card(row, from + i + 1, classes)));
    const shown = from + next.length;
    const rest = total > rows.length ? ` listed here; ${count(total)} in all` : "";
    status.textContent = `Showing ${count(shown)} of ${plural(rows.length, "task")}${rest}.`;
    more.hidden = shown >= rows.length;
    more.textContent = `Show ${plural(Math.min(STEP, rows.length - shown), "more task")}`;
    return next.length > 0;
  }

  showMore();
  const keys = el("input", { type: "checkbox", checked: true });
  walk(list, showMore, () => keys.checked);
  const help = el(
    "label",
    { class: "check" },
    keys,
    el("span", {}, "Keys ", el("kbd", {}, "j"), " and ", el("kbd", {}, "k"), " move through the tasks"),
  );
  const save = button("save", "Save this list", () => saveTasks(rows, classes));
  return [intro, el("div", { class: "controls" }, save, help), voteKey(), status, list, el("p", {}, more), ...notes.map((note) => el("p", { class: "note" }, note))];
}

// Tasks worth another look, most uncertain first.
import type { Shared, TaskRow, Tasks, Vote } from "../../generated";
import { aside, button, type Child, el, name, sentence, unknown } from "../../dom";
import { count, decimal, percent, plain, plural } from "../../format";
import { saveTasks } from "../../save";
import { walk } from "../../walk";

const FIRST = 10; // tasks shown at first
const STEP = 40; // and by each "show more"
const TOP = 6; // classes of a posterior that are shown one by one

/** A bar from 0 to 1. Its length is set by script: the page's policy allows no style attributes. */
function bar(share: number): HTMLElement {
  const full = el("span", { class: "full" });
  full.style.width = `${(100 * Math.min(1, Math.max(0, share))).toFixed(1)}%`;
  return el("span", { class: "bar", "aria-hidden": "true" }, full);
}

function posterior(row: TaskRow, classes: string[]): HTMLElement {
  if (!row.posterior.length) return sentence("No posterior is known.");
  // One class left over is better shown than summed.
  const top = row.posterior.slice(0, row.posterior.length === TOP + 1 ? TOP + 1 : TOP);
  const listed = top.reduce((sum, [, p]) => sum + p, 0);
  const others = Math.max(classes.length, row.posterior.length) - top.length;
  const lines = top.map(([label, p]) =>
    el(
      "li",
      {},
      el("bdi", { class: "class-name", title: plain(classes[label] ?? "") }, classes[label] ?? ""),
      bar(p),
      el("span", { class: "value" }, percent(p)),
    ),
  );
  const rest =
    others > 0 &&
    el(
      "li",
      { class: "rest" },
      el("span", { class: "class-name" }, plural(others, "other class", "other classes")),
      bar(1 - listed),
      el("span", { class: "value" }, percent(Math.max(0, 1 - listed))),
    );
  return el("ul", { class: "posterior" }, ...lines, rest);
}

function voteChip(vote: Vote, row: TaskRow, classes: string[]): HTMLElement {
  const label = classes[vote.label] ?? "";
  const skill = vote.skill === null ? "skill not known" : `skill ${percent(vote.skill)}`;
  const agrees = vote.label === row.label;
  return el(
    "li",
    { class: agrees ? "vote" : "vote other", title: `${plain(label)}, told by ${plain(vote.worker)}, ${skill}` },
    el("bdi", { class: "class-name" }, label),
    aside(` told by ${plain(vote.worker)}, skill `),
    vote.skill !== null && bar(vote.skill),
    el("span", { class: "value" }, vote.skill === null ? unknown() : percent(vote.skill)),
  );
}

function votes(row: TaskRow, classes: string[]): HTMLElement {
  if (!row.votes.length) return sentence("Nobody answered this task.");
  const more = row.more_votes > 0 && el("li", { class: "vote rest" }, `and ${plural(row.more_votes, "more answer")}`);
  const other = (vote: Vote) => Number(vote.label !== row.label);
  const sorted = [...row.votes].sort((a, b) => other(a) - other(b) || a.label - b.label);
  return el("ul", { class: "votes" }, ...sorted.map((vote) => voteChip(vote, row, classes)), more);
}

function facts(row: TaskRow): string {
  const parts: [number | null, (v: number) => string][] = [
    [row.answers, (v) => plural(v, "answer")],
    [row.entropy, (v) => `entropy ${decimal(v)}`],
    [row.vote_entropy, (v) => `entropy of votes ${decimal(v)}`],
    [row.disagreement, (v) => `disagreement ${decimal(v)}`],
    [row.difficulty, (v) => `difficulty ${decimal(v)}`],
    [row.gain, (v) => `an answer gains ${(100 * v).toFixed(1)} points`],
  ];
  return parts.flatMap(([value, words]) => (value === null ? [] : [words(value)])).join(" \u00b7 ");
}

function card(row: TaskRow, position: number, classes: string[]): HTMLElement {
  const states: Child[] = [
    row.tie && el("span", { class: "flag" }, "\u2248 tie"),
    row.status !== "ok" && el("span", { class: "flag quiet" }, `\u25cb ${row.status}`),
  ];
  const verdict =
    row.label === null
      ? unknown()
      : el("bdi", { class: "class-name", title: plain(classes[row.label] ?? "") }, classes[row.label] ?? "");
  const sure = row.probability === null ? null : percent(row.probability);
  return el(
    "article",
    { class: "task", tabindex: -1, "aria-label": `Task ${plain(row.task)}` },
    el(
      "div",
      { class: "head" },
      el("h3", {}, el("span", { class: "position" }, count(position)), name(row.task), ...states),
      el("p", { class: "verdict" }, verdict, " ", sure),
    ),
    el("p", { class: "note" }, facts(row)),
    el(
      "div",
      { class: "columns" },
      el("div", {}, el("h4", {}, "Posterior"), posterior(row, classes)),
      el("div", {}, el("h4", {}, "Votes, with the skill behind them"), votes(row, classes)),
    ),
  );
}

export function draw({ headline, rows, total }: Tasks, { classes }: Shared): HTMLElement[] {
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
    const listed = plural(rows.length, "task");
    status.textContent = `Showing ${count(shown)} of the ${listed} listed, of ${count(total)} in all.`;
    more.hidden = shown >= rows.length;
    more.textContent = `Show ${count(Math.min(STEP, rows.length - shown))} more tasks`;
    return next.length > 0;
  }

  showMore();
  const keys = el("input", { type: "checkbox", checked: true });
  walk(list, showMore, () => keys.checked);
  const help = el(
    "label",
    { class: "check" },
    keys,
    " Keys ",
    el("kbd", {}, "j"),
    " and ",
    el("kbd", {}, "k"),
    " walk the tasks",
  );
  const save = button("save", "Save this list", () => saveTasks(rows, classes));
  return [intro, el("div", { class: "controls" }, save, help), status, list, el("p", {}, more)];
}

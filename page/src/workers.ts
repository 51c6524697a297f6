// The table of workers: sorted, searched, filtered, and opened one by one.
import type { Page, WorkerRow } from "./data";
import { button, el, name, sentence } from "./dom";
import { count, plain, plural } from "./format";
import { scrolling } from "./table";
import { type Column, columnsOf } from "./worker-columns";
import { workerDetail } from "./worker-detail";

const STEP = 50; // rows shown at first, and by each "show more"

interface State {
  query: string;
  flaggedOnly: boolean;
  column: Column | null; // null: the order of the data
  down: boolean;
  shown: number;
  open: WorkerRow | null;
}

/** Compares by a column; what is not known stays last either way. */
function comparer(column: Column, down: boolean): (a: WorkerRow, b: WorkerRow) => number {
  const sign = down ? -1 : 1;
  return (a, b) => {
    const [x, y] = [column.value(a), column.value(b)];
    if (x === null || y === null) return Number(x === null) - Number(y === null);
    if (typeof x === "string" || typeof y === "string") {
      return sign * String(x).localeCompare(String(y), "en", { numeric: true });
    }
    return sign * (x - y);
  };
}

function chosen(rows: WorkerRow[], state: State): WorkerRow[] {
  const wanted = state.query.trim().toLowerCase();
  const found = rows.filter(
    (row) =>
      (!state.flaggedOnly || row.flags.length > 0) &&
      (!wanted || [row.worker, ...row.flags].some((text) => text.toLowerCase().includes(wanted))),
  );
  return state.column ? found.sort(comparer(state.column, state.down)) : found;
}

export function workersSection(page: Page): HTMLElement[] {
  const rows = page.workers.rows;
  const says = el("p", { class: "says" }, page.workers.says);
  if (!rows.length) return [says, sentence("There are no workers to show.")];

  const columns = columnsOf(rows);
  const state: State = { query: "", flaggedOnly: false, column: null, down: false, shown: STEP, open: null };
  const body = el("tbody");
  const heads = columns.map((column) => {
    const sorter = button("sort", column.title, () => {
      state.down = state.column === column ? !state.down : column.downFirst;
      state.column = column;
      fill();
    });
    sorter.title = column.help;
    return el("th", { scope: "col", class: column.numeric && "number" }, sorter);
  });
  const status = el("p", { class: "status", role: "status" });
  const more = button("more", "", () => {
    state.shown += STEP;
    fill();
  });

  function toggle(row: WorkerRow, refocus: boolean): void {
    state.open = state.open === row ? null : row;
    fill();
    if (refocus) body.querySelector<HTMLElement>(`button[data-row="${rows.indexOf(row)}"]`)?.focus();
  }

  function line(row: WorkerRow): HTMLElement[] {
    const open = state.open === row;
    const pick = el(
      "button",
      { type: "button", class: "pick", "aria-expanded": String(open), "data-row": rows.indexOf(row) },
      name(row.worker),
    );
    const cells = columns.map((column) => {
      if (column.title === "Worker") return el("th", { scope: "row" }, pick);
      return el("td", { class: column.numeric && "number" }, column.cell(row));
    });
    const made = el("tr", { class: open ? "chosen" : null }, ...cells);
    made.addEventListener("click", (event) => {
      // A click that only ends a selection of text is not a choice.
      if (!window.getSelection()?.toString() || pick.contains(event.target as Node)) toggle(row, true);
    });
    if (!open) return [made];
    const detail = el(
      "div",
      { class: "detail", role: "group", "aria-label": `Worker ${plain(row.worker)}` },
      ...workerDetail(row, page.classes),
    );
    detail.addEventListener("keydown", (event) => {
      if (event.key === "Escape") toggle(row, true);
    });
    return [made, el("tr", { class: "detail-row" }, el("td", { colspan: columns.length }, detail))];
  }

  function fill(): void {
    const found = chosen(rows, state);
    const visible = found.slice(0, state.shown);
    body.replaceChildren(...visible.flatMap(line));
    heads.forEach((head, i) => {
      const sorted = state.column === columns[i];
      if (sorted) head.setAttribute("aria-sort", state.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    const of = page.workers.total > rows.length ? `, of ${count(page.workers.total)} in all` : "";
    status.textContent = `Showing ${count(visible.length)} of ${plural(found.length, "worker")}${of}.`;
    more.hidden = visible.length === found.length;
    more.textContent = `Show ${count(Math.min(STEP, found.length - visible.length))} more workers`;
  }

  fill();
  // Paper has no button: all that match are printed.
  let before = state.shown;
  window.addEventListener("beforeprint", () => {
    before = state.shown;
    state.shown = rows.length;
    fill();
  });
  window.addEventListener("afterprint", () => {
    state.shown = before;
    fill();
  });
  const table = el(
    "table",
    { class: "workers" },
    el("caption", { class: "visually-hidden" }, "Workers"),
    el("thead", {}, el("tr", {}, ...heads)),
    body,
  );
  return [says, controls(state, fill), status, scrolling("Table of workers", table), el("p", {}, more)];
}

/** Search by name or flag, and the filter. */
function controls(state: State, fill: () => void): HTMLElement {
  const search = el("input", { type: "search", placeholder: "Name or flag", autocomplete: "off", spellcheck: "false" });
  search.addEventListener("input", () => {
    state.query = search.value;
    state.shown = STEP;
    fill();
  });
  const only = el("input", { type: "checkbox", class: "flagged-only" });
  only.addEventListener("change", () => {
    state.flaggedOnly = only.checked;
    state.shown = STEP;
    fill();
  });
  return el(
    "div",
    { class: "controls" },
    el("label", {}, "Find a worker ", search),
    el("label", { class: "check" }, only, " Flagged only"),
  );
}

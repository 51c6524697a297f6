// A long table: sorted, searched, filtered, and opened row by row.
import { button, type Child, el } from "./dom";
import { count, plural } from "./format";
import { scrolling } from "./table";

const STEP = 50; // rows shown at first, and by each "show more"

export interface Column<Row> {
  title: string;
  help: string;
  numeric: boolean;
  downFirst: boolean; // the first click sorts from high to low
  names?: boolean; // names the row
  phone?: "line" | "strip"; // on a phone: beside the name, or across the whole row; others show when a row is opened
  scale?: () => Child; // what the head has below its title
  value: (row: Row) => number | string | null;
  cell: (row: Row) => Child;
}

type Part<Row> = Omit<Column<Row>, "numeric" | "downFirst"> & Partial<Column<Row>>;

/** A column; most hold numbers, of which the high ones are looked for. */
export const column = <Row>(part: Part<Row>): Column<Row> => ({ numeric: true, downFirst: true, ...part });

/** The columns with a value in any row, and those that are always shown. */
export function filled<Row>(columns: Column<Row>[], rows: Row[], always: Set<string>): Column<Row>[] {
  return columns.filter((each) => always.has(each.title) || rows.some((row) => each.value(row) !== null));
}

export interface Ledger<Row> {
  what: string; // one of them: "worker"
  rows: Row[];
  total?: number; // of which these rows are a part
  columns: Column<Row>[];
  search?: { hint: string; texts: (row: Row) => string[] };
  only?: { label: string; className: string; keep: (row: Row) => boolean }; // a box to tick
  keep?: (row: Row) => boolean; // rows that are there at all, at this moment
  detail?: (row: Row) => { label: string; content: HTMLElement[] }; // of a row that is opened
  opened?: (row: Row | null) => void;
  printed?: number; // rows on paper, at most
}

interface State<Row> {
  rows: Row[];
  query: string;
  only: boolean;
  column: Column<Row> | null; // null: the order of the data
  down: boolean;
  shown: number;
  open: Row | null;
}

/** Compares by a column; what is not known stays last either way. */
function comparer<Row>(by: Column<Row>, down: boolean): (a: Row, b: Row) => number {
  const sign = down ? -1 : 1;
  return (a, b) => {
    const [x, y] = [by.value(a), by.value(b)];
    if (x === null || y === null) return Number(x === null) - Number(y === null);
    if (typeof x === "string" || typeof y === "string") {
      return sign * String(x).localeCompare(String(y), "en", { numeric: true });
    }
    return sign * (x - y);
  };
}

function chosen<Row>({ search, only, keep }: Ledger<Row>, state: State<Row>): Row[] {
  const wanted = state.query.trim().toLowerCase();
  const found = state.rows.filter(
    (row) =>
      (!keep || keep(row)) &&
      (!only || !state.only || only.keep(row)) &&
      (!search || !wanted || search.texts(row).some((text) => text.toLowerCase().includes(wanted))),
  );
  return state.column ? found.sort(comparer(state.column, state.down)) : found;
}

export interface Drawn<Row> {
  parts: HTMLElement[]; // controls, how many are shown, the table, and the button for more
  /** Shows these rows from now on, or filters the present ones again by `keep`. */
  fill: (rows?: Row[]) => void;
  /** Opens a row, or closes the one that is open. */
  open: (row: Row | null) => void;
}

export function ledger<Row>(options: Ledger<Row>): Drawn<Row> {
  const { columns, detail, what } = options;
  const state: State<Row> = {
    rows: options.rows,
    query: "",
    only: false,
    column: null,
    down: false,
    shown: STEP,
    open: null,
  };
  const body = el("tbody", { role: "rowgroup" });
  const heads = columns.map((each) => {
    const sorter = button("sort", each.title, () => {
      state.down = state.column === each ? !state.down : each.downFirst;
      state.column = each;
      fill();
    });
    sorter.title = each.help;
    return el("th", { scope: "col", role: "columnheader", class: classOf(each) }, sorter, each.scale?.());
  });
  const sorting = sortChoice(columns, (column, down) => {
    Object.assign(state, { column, down });
    fill();
  });
  const status = el("p", { class: "status", role: "status" });
  const more = button("more", "", () => {
    state.shown += STEP;
    fill();
  });

  const pickOf = (row: Row) => body.querySelector<HTMLElement>(`button[data-row="${state.rows.indexOf(row)}"]`);

  function toggle(row: Row, refocus: boolean): void {
    open(state.open === row ? null : row);
    if (refocus) pickOf(row)?.focus();
  }

  function open(row: Row | null): void {
    state.open = row;
    if (row !== null) state.shown = Math.max(state.shown, chosen(options, state).indexOf(row) + 1);
    fill();
    if (row !== null) reveal(row);
    options.opened?.(row);
  }

  /** Scrolls the table, where it has a height of its own, until a row can be seen; the page stays where it is. */
  function reveal(row: Row): void {
    const made = pickOf(row)?.closest("tr");
    const top = heads[0]?.offsetHeight ?? 0;
    if (!made) return;
    const at = made.offsetTop - box.scrollTop;
    if (at < top || at + made.offsetHeight > box.clientHeight) box.scrollTop = made.offsetTop - top - 10;
  }

  function line(row: Row): HTMLElement[] {
    const isOpen = state.open === row;
    const of = { type: "button", class: "pick", "aria-expanded": String(isOpen), "data-row": state.rows.indexOf(row) };
    const cells = columns.map((each) => {
      const style = { class: classOf(each), "data-title": each.title };
      if (!each.names) return el("td", { role: "cell", ...style }, each.cell(row));
      const named = detail ? el("button", of, each.cell(row)) : each.cell(row);
      return el("th", { scope: "row", role: "rowheader", ...style }, named);
    });
    const made = el("tr", { role: "row", class: isOpen ? "chosen" : null }, ...cells);
    if (!detail) return [made];
    made.addEventListener("click", (event) => {
      // A click that only ends a selection of text is not a choice.
      const picked = event.target instanceof Element && event.target.closest(".pick") !== null;
      if (picked || !window.getSelection()?.toString()) toggle(row, true);
    });
    if (!isOpen) return [made];
    const { label, content } = detail(row);
    const box = el("div", { class: "detail", role: "group", "aria-label": label }, ...content);
    box.addEventListener("keydown", (event) => {
      if (event.key === "Escape") toggle(row, true);
    });
    const across = el("td", { role: "cell", colspan: columns.length }, box);
    return [made, el("tr", { role: "row", class: "detail-row" }, across)];
  }

  function fill(rows?: Row[]): void {
    if (rows) {
      state.rows = rows;
      state.open = null;
      state.shown = STEP;
    }
    const found = chosen(options, state);
    const visible = found.slice(0, state.shown);
    body.replaceChildren(...visible.flatMap(line));
    heads.forEach((head, i) => {
      const sorted = state.column === columns[i];
      if (sorted) head.setAttribute("aria-sort", state.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    sorting.show(state.column, state.down);
    const total = options.total ?? 0;
    const of = total > state.rows.length ? `, of ${count(total)} in all` : "";
    status.textContent = `Showing ${count(visible.length)} of ${plural(found.length, what)}${of}.`;
    more.hidden = visible.length === found.length;
    more.textContent = `Show ${plural(Math.min(STEP, found.length - visible.length), `more ${what}`)}`;
  }

  const title = `${what[0]!.toUpperCase()}${what.slice(1)}s`;
  const table = el(
    "table",
    { class: detail ? "workers" : "workers still", role: "table" },
    el("caption", { class: "visually-hidden" }, title),
    el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, ...heads)),
    body,
  );
  const frame = scrolling(`Table of ${what}s`, table);
  const box = table.parentElement!;
  fill();
  // Paper has no button: all that match are printed, or the first of very many.
  let before = state.shown;
  window.addEventListener("beforeprint", () => {
    before = state.shown;
    state.shown = Math.min(state.rows.length, options.printed ?? Infinity);
    fill();
  });
  window.addEventListener("afterprint", () => {
    state.shown = before;
    fill();
  });
  const above = el("div", { class: "controls" }, ...filters(options, state, () => fill()), sorting.node);
  return { parts: [above, status, frame, el("p", {}, more)], fill, open };
}

function classOf<Row>({ numeric, names, phone }: Column<Row>): string {
  return [numeric && "number", names ? "name" : (phone ?? "further")].filter(Boolean).join(" ");
}

interface SortChoice<Row> {
  node: HTMLElement;
  show: (column: Column<Row> | null, down: boolean) => void;
}

/** The order of the rows as one choice, for phones: their tables have no heads to press. */
function sortChoice<Row>(
  columns: Column<Row>[],
  choose: (column: Column<Row> | null, down: boolean) => void,
): SortChoice<Row> {
  const words = ({ title }: Column<Row>, down: boolean) => `${title}, ${down ? "descending" : "ascending"}`;
  const valueOf = (column: Column<Row> | null, down: boolean) =>
    column ? `${columns.indexOf(column)} ${down ? "down" : "up"}` : "";
  const options = columns.flatMap((each) =>
    [each.downFirst, !each.downFirst].map((down) => el("option", { value: valueOf(each, down) }, words(each, down))),
  );
  const made = el("select", {}, el("option", { value: "" }, "As listed"), ...options);
  made.addEventListener("change", () => {
    const [at, way] = made.value.split(" ");
    choose(at ? columns[Number(at)]! : null, way === "down");
  });
  return {
    node: el("label", { class: "sort-by" }, "Sort by ", made),
    show: (column, down) => {
      made.value = valueOf(column, down);
    },
  };
}

/** Search by words, and the box to tick. */
function filters<Row>({ what, search, only }: Ledger<Row>, state: State<Row>, fill: () => void): HTMLElement[] {
  const made: HTMLElement[] = [];
  if (search) {
    const field = el("input", { type: "search", placeholder: search.hint, autocomplete: "off", spellcheck: "false" });
    field.addEventListener("input", () => {
      state.query = field.value;
      state.shown = STEP;
      fill();
    });
    made.push(el("label", {}, `Find ${/^[aeiou]/.test(what) ? "an" : "a"} ${what} `, field));
  }
  if (only) {
    const box = el("input", { type: "checkbox", class: only.className });
    box.addEventListener("change", () => {
      state.only = box.checked;
      state.shown = STEP;
      fill();
    });
    made.push(el("label", { class: "check" }, box, ` ${only.label}`));
  }
  return made;
}

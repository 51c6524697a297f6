// How the number of objects, or of clusters, was found: the criterion and the number, iteration by iteration.
import { axisX, axisY, dot, gridY, line, plot } from "@observablehq/plot";
import { LETTER } from "./charts";
import { AXIS, COMMON, COOL, FAINT, NARROW, WARM } from "./chart-style";
import { asCount, el, orDash } from "./dom";
import { figure, key } from "./figure";
import { count, decimal, significant } from "./format";
import type { Iteration, Search } from "./generated";
import { ringSample } from "./series";
import { number } from "./table";

/** A number of any size, short enough for an axis. */
function value(v: number): string {
  return (Math.abs(v) >= 999.5 ? count(Math.round(v)) : significant(v)).replace(/^-/, "\u2212");
}

const whole = (v: number): string => (Number.isInteger(v) ? count(v) : "");

interface Part {
  of: 1 | 2; // place in a row
  label: string;
  last: boolean;
}

function drawOne({ rows, best }: Search, { of, label, last }: Part, marginLeft: number, width: number): Element {
  const known = rows.filter((r) => r[of] !== null);
  const ticks = width < NARROW ? 4 : 8;
  const flat = known.every((r) => r[of] === known[0]![of]) ? known[0]![of]! : 0; // a value that never changes
  const colour = of === 1 ? COOL : WARM;
  const about = (r: Iteration) => `iteration ${count(r[0])}: ${label} ${value(r[of]!)}`;
  const taken = known.filter((r) => r[0] === best);
  return plot({
    ...COMMON,
    width,
    height: (width < NARROW ? 190 : 220) + (last ? 26 : 0),
    marginLeft,
    marginRight: 20,
    marginTop: 28,
    marginBottom: last ? 50 : 24,
    x: { domain: [rows[0]![0], Math.max(rows[rows.length - 1]![0], rows[0]![0] + 1)] },
    y: flat ? { domain: [Math.min(0, flat), Math.max(0, 1.2 * flat)] } : { nice: true },
    marks: [
      gridY({ stroke: FAINT, strokeOpacity: 1, ticks: 5 }),
      axisX({ ...AXIS, ticks, tickFormat: whole, label: last ? "iteration" : null }),
      axisY({ ...AXIS, ticks: 5, tickFormat: of === 1 ? value : whole, label }),
      line(known, { x: "0", y: String(of), stroke: colour, strokeWidth: 2 }),
      dot(known.length <= 200 ? known : taken, { x: "0", y: String(of), r: 2.2, fill: colour, title: about }),
      dot(taken, { x: "0", y: String(of), r: 7, stroke: "currentColor", strokeWidth: 2.2, title: about }),
    ],
  });
}

/** Both charts, one above the other, as one picture. */
function draw(search: Search, what: string, width: number): Element {
  const all: Omit<Part, "last">[] = [{ of: 1, label: search.criterion }, { of: 2, label: what }];
  const parts = all.filter(({ of }) => search.rows.some((r) => r[of] !== null));
  const letters = search.rows.flatMap((r) => parts.map(({ of }) => value(r[of] ?? 0).length));
  const left = Math.min(110, Math.max(54, Math.max(...letters) * LETTER + 14));
  const last = parts[parts.length - 1];
  return el("div", {}, ...parts.map((part) => drawOne(search, { ...part, last: part === last }, left, width)));
}

/** The search for so many of `what`. */
export function searchFigure(search: Search, what: "objects" | "clusters"): HTMLElement[] {
  const { rows, headline, best, criterion } = search;
  const title = `${what[0]!.toUpperCase()}${what.slice(1)}`;
  return [
    figure({
      label: `The criterion and the number of ${what} against the iteration`,
      headline,
      key: best === null ? undefined : key([ringSample(), "the iteration that the result is from"]),
      draw: (width) => draw(search, what, width),
      heads: [number("Iteration"), number(criterion), number(title), ...(best === null ? [] : [{ title: "Result" }])],
      rows: rows.map(([iteration, objective, many]) => [
        count(iteration),
        orDash(objective, (v) => decimal(v)),
        asCount(many),
        ...(best === null ? [] : [iteration === best ? "result" : ""]),
      ]),
    }),
  ];
}

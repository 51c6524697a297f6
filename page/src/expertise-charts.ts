// Charts of how often workers give a class when it is true.
import { axisX, axisY, dot, gridX, link, type Markish, plot, tickX } from "@observablehq/plot";
import { nameRoom } from "./charts";
import { AXIS, COMMON, FAINT, NARROW } from "./chart-style";
import type { Person } from "./experts";
import { percent, plain, short } from "./format";
import { labels } from "./labels";
import { paint, styleOf } from "./series";
import { lettersLeft, rangeOf, square } from "./square";

export const TRUTH = "truth"; // the method that is no estimate, as in crowdwise.report.sections.labels.expertise
const NAMED = 12; // workers up to which names are written
const MANY = 400; // points
const LANE = 18; // pixels of a row of ticks

export interface Point {
  person: Person;
  method: string;
  x: number;
  y: number;
  about: string;
}

/** The methods that are estimates; their place gives their style. */
export const estimates = (methods: string[]): string[] => methods.filter((method) => method !== TRUTH);

/** The points of each method, in its style; where they are many they are small, and let each other through. */
function methodDots(points: Point[], methods: string[]): Markish[] {
  const look = points.length > MANY ? { r: 3, opacity: 0.55 } : { r: 4, opacity: 0.85 };
  return estimates(methods).map((method, i) => {
    const own = points.filter((p) => p.method === method);
    const style = styleOf(i);
    return dot(own, { x: "x", y: "y", symbol: style.symbol, ...look, ...paint(style), title: "about" });
  });
}

/** With two classes: a point a worker and method, the share of the one class across and that of the other up. */
export function bothClasses(people: Person[], methods: string[], classes: string[]): Point[] {
  return methods.flatMap((method) =>
    people.flatMap((person) => {
      const [x, y] = [person.share(method, 0), person.share(method, 1)];
      if (x === null || y === null) return [];
      const shares = [x, y].map((share, label) => `class ${plain(classes[label] ?? "")}: ${percent(share)}`).join(", ");
      return [{ person, method, x, y, about: `${plain(person.worker)}, ${plain(method)}: ${shares}` }];
    }),
  );
}

export function drawBothClasses(points: Point[], methods: string[], classes: string[], width: number): Element {
  const truths = new Map(points.filter((p) => p.method === TRUTH).map((p) => [p.person, p]));
  const lines = points.flatMap((p) => {
    const truth = p.method !== TRUTH && truths.get(p.person);
    return truth ? [{ x1: truth.x, y1: truth.y, x2: p.x, y2: p.y }] : [];
  });
  const range = rangeOf(points.flatMap((p) => [p.x, p.y]));
  // The first point of a worker is the truth, where it is known.
  const first = new Map([...points].reverse().map((p) => [p.person, p]));
  const spots = [...first.values()].map((p) => ({ name: p.person.worker, x: p.x, y: p.y }));
  const all = points.map((p): [number, number] => [p.x, p.y]);
  const faint = { stroke: "var(--muted)", strokeOpacity: points.length > MANY ? 0.3 : 0.6 };
  const words = classes.map((each) => `gives ${short(each, lettersLeft(width, 22))} when it is true`);
  return square({ width, range, x: words[0]!, y: words[1]!, diagonal: false }, [
    link(lines, { x1: "x1", y1: "y1", x2: "x2", y2: "y2", ...faint }),
    ...(spots.length <= NAMED ? labels(spots, all, width, range) : []),
    dot([...truths.values()], { x: "x", y: "y", r: 6, stroke: "currentColor", strokeWidth: 1.8, title: "about" }),
    ...methodDots(points, methods),
  ]);
}

/** With more classes: a point a worker, class and method, the truth across and the estimate up. */
export function againstTruth(people: Person[], methods: string[], classes: string[]): Point[] {
  return estimates(methods).flatMap((method) =>
    people.flatMap((person) =>
      classes.flatMap((label, k) => {
        const [x, y] = [person.share(TRUTH, k), person.share(method, k)];
        if (x === null || y === null) return [];
        const who = `${plain(person.worker)} where ${plain(label)} is true`;
        return [{ person, method, x, y, about: `${who}: ${percent(x)}; ${plain(method)}: ${percent(y)}` }];
      }),
    ),
  );
}

export function drawAgainstTruth(points: Point[], methods: string[], width: number): Element {
  const range = rangeOf(points.flatMap((p) => [p.x, p.y]));
  const words = { x: "gives the class when it is true: truth", y: "estimated" };
  return square({ width, range, ...words, diagonal: true }, methodDots(points, methods));
}

/** A tick a worker, in a row for each class and method. */
export function drawStrips(
  people: Person[],
  methods: string[],
  labels: number[],
  classes: string[],
  width: number,
): Element {
  const { marginLeft, letters } = nameRoom(
    labels.map((k) => classes[k] ?? ""),
    width,
  );
  const lanes = methods.map((method) =>
    people.flatMap((person) =>
      labels.flatMap((label) => {
        const share = person.share(method, label);
        const who = `${plain(person.worker)}, ${plain(method)}, class ${plain(classes[label] ?? "")}`;
        return share === null ? [] : [{ label, share, about: `${who}: ${percent(share)}` }];
      }),
    ),
  );
  const ticks = width < NARROW ? 4 : 10;
  const band = methods.length * LANE;
  return plot({
    ...COMMON,
    width,
    height: labels.length * (band + 12) + 58,
    marginLeft,
    marginRight: 24,
    marginTop: 8,
    marginBottom: 50,
    x: { domain: rangeOf(lanes.flat().map((tick) => tick.share)) },
    y: { type: "band", domain: labels, paddingInner: 12 / (band + 12), paddingOuter: 0, round: false },
    marks: [
      gridX({ ticks, stroke: FAINT, strokeOpacity: 1 }),
      axisX({ ...AXIS, ticks, tickFormat: (v: number) => percent(v, 0), label: "gives the class when it is true" }),
      axisY({ ...AXIS, label: null, tickFormat: (k: number) => short(classes[k] ?? "", letters) }),
      ...lanes.map((own, i) =>
        tickX(own, {
          x: "share",
          y: "label",
          insetTop: i * LANE + 1,
          insetBottom: (methods.length - 1 - i) * LANE + 1,
          stroke: styleOf(i).colour,
          strokeWidth: 2,
          strokeOpacity: 0.7,
          title: "about",
        }),
      ),
    ],
  });
}

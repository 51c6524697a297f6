// Objects as ellipses, which can be reached by keys, with their number beside them: the one of the table.
import { svg } from "./dom";
import { percent, plural } from "./format";
import type { Box, ImageRow, ObjectRow, TrueObject } from "./generated";
import { extent, type Scale } from "./stage-scale";

const [DIGIT, HIGH] = [7.7, 12]; // pixels
const CORNERS = [
  [true, false],
  [true, true],
  [false, false],
  [false, true],
] as const; // right, below
const NUMBERS = 1500; // objects up to which numbers are beside them
const ROOM = 1100; // square pixels an object from which there is room for numbers
const LINES = 12; // pixels from which an ellipse has room for lines

/** An object in a few words. */
export function objectWords({ object, probability, supporters, doubtful }: ObjectRow): string {
  const sure = probability === null ? "" : `, probability ${percent(probability)}${doubtful ? " (doubtful)" : ""}`;
  return `Object ${object}${supporters === null ? "" : `, ${plural(supporters, "worker")}`}${sure}`;
}

export function drawFrame([left, top, right, bottom]: Box, { x, y }: Scale): SVGElement {
  const [wide, high] = [x(right) - x(left), y(bottom) - y(top)];
  return svg("rect", { class: "frame", x: x(left), y: y(top), width: wide, height: high });
}

export function drawObject(object: ObjectRow, scale: Scale, chosen: boolean): SVGElement {
  const [x, y] = [scale.x(object.x), scale.y(object.y)];
  const [long, short, angle] = object.ellipse ?? [0, 0, 0];
  const shape = {
    rx: Math.max(long, 2 / scale.across),
    ry: Math.max(short, 2 / scale.down),
    transform: `translate(${x} ${y}) scale(${scale.across} ${scale.down}) rotate(${angle})`,
  };
  const arm = Math.min(3, Math.max(1, extent(object, scale) / 3));
  return svg(
    "g",
    {
      class: `object${object.doubtful ? " doubtful" : ""}${chosen ? " chosen" : ""}`,
      role: "button",
      tabindex: -1,
      "aria-pressed": String(chosen),
      "aria-label": objectWords(object),
      "data-object": object.object,
    },
    svg("ellipse", { class: "halo", ...shape }),
    svg("ellipse", { class: "edge", ...shape }),
    svg("path", { class: "centre", d: `M${x - arm} ${y}h${2 * arm}M${x} ${y - arm}v${2 * arm}` }),
  );
}

function hasRoom(objects: ObjectRow[], { width, height }: Scale): boolean {
  return objects.length <= NUMBERS && width * height >= ROOM * objects.length;
}

/**
 * The number of each object beside its ellipse, unless it would cover a centre or another number. The chosen object and
 * the doubtful ones come first; where there is little room, only these have a number.
 */
export function drawNumbers(objects: ObjectRow[], chosen: ObjectRow | null, scale: Scale): SVGElement[] {
  const taken = objects.map(({ x, y }): Box => [scale.x(x) - 3, scale.y(y) - 3, scale.x(x) + 3, scale.y(y) + 3]);
  const urgency = (object: ObjectRow) => (object === chosen ? 2 : Number(object.doubtful));
  const roomy = hasRoom(objects, scale);
  const numbered = objects.filter((object) => roomy || urgency(object) > 0);
  return numbered
    .sort((a, b) => urgency(b) - urgency(a))
    .flatMap((object) => {
      const text = String(object.object);
      const place = free(object, text.length * DIGIT + 2, taken, scale);
      return place ? [svg("text", { x: place[0] + 1, y: place[3] - 2 }, text)] : [];
    });
}

/** A place at a corner of an ellipse that nothing has taken yet. */
function free(object: ObjectRow, wide: number, taken: Box[], scale: Scale): Box | null {
  const [x, y] = [scale.x(object.x), scale.y(object.y)];
  const away = Math.max(4, 0.75 * extent(object, scale));
  for (const [right, below] of CORNERS) {
    const left = right ? x + away : x - away - wide;
    const top = below ? y + away - 2 : y - away - HIGH + 2;
    const own: Box = [left, top, left + wide, top + HIGH];
    const inside = left >= 0 && top >= 0 && own[2] <= scale.width && own[3] <= scale.height;
    if (!inside || taken.some((b) => b[0] < own[2] && own[0] < b[2] && b[1] < own[3] && own[1] < b[3])) continue;
    taken.push(own);
    return own;
  }
  return null;
}

/** A ring that finds an object, with lines to those of its clicks that are shown. */
export function drawFinder(object: ObjectRow, { clicks }: ImageRow, shown: number[], scale: Scale): SVGElement[] {
  const [x, y] = [scale.x(object.x), scale.y(object.y)];
  const size = extent(object, scale);
  const own = shown.filter((i) => clicks.object[i] === object.object);
  const lines = own.map((i) => `M${x} ${y}L${scale.x(clicks.x[i]!)} ${scale.y(clicks.y[i]!)}`);
  const ring = { cx: x, cy: y, r: size + 9 };
  return [
    svg("path", { class: "own", d: size > LINES ? lines.join("") : "" }),
    svg("circle", { class: "find halo", ...ring }),
    svg("circle", { class: "find", ...ring }),
  ];
}

export type TruthMark = "found" | "missed" | "none";

/** The shape of a mark of the truth around a place: a square, a cross or a triangle. */
export function truthPath(mark: TruthMark, x: number, y: number, size: number): string {
  const [left, top, side] = [x - size, y - size, 2 * size];
  if (mark === "found") return `M${left} ${top}h${side}v${side}h${-side}Z`;
  if (mark === "missed") return `M${left} ${top}l${side} ${side}M${left} ${y + size}l${side} ${-side}`;
  return `M${x} ${top - 1}L${x + size + 1} ${y + size - 1}H${left - 1}Z`;
}

/** True objects, found or missed, and the objects that match none; the more there are, the smaller are the marks. */
export function drawTruth(truth: TrueObject[], objects: ObjectRow[], { x, y, width, height }: Scale): SVGElement[] {
  const size = Math.min(6, Math.max(2.5, 0.16 * Math.sqrt((width * height) / Math.max(1, truth.length))));
  const marks: [TruthMark, number, number][] = [
    ...truth.map(([left, top, object]): [TruthMark, number, number] => [object === null ? "missed" : "found", left, top]),
    ...objects.filter((o) => o.matched === false).map((o): [TruthMark, number, number] => ["none", o.x, o.y]),
  ];
  return marks.flatMap(([mark, left, top]) => {
    const d = truthPath(mark, x(left), y(top), size);
    return [svg("path", { class: "halo", d }), svg("path", { class: `truth-${mark}`, d })];
  });
}

// Names beside points, where they cover least.
import { type Markish, text } from "@observablehq/plot";
import { LETTER } from "./charts";
import { NARROW, PAPER } from "./chart-style";
import { short } from "./format";
import { pixels, type Range, sideOf } from "./square";

const LETTERS = { narrow: 10, wide: 16 }; // of a name
const HEIGHT = 15;
const RING = 8; // pixels around a point that are taken

export interface Spot {
  name: string;
  x: number;
  y: number;
}

type Box = [left: number, top: number, right: number, bottom: number];
type Side = { textAnchor: "start" | "end" | "middle"; dx: number; dy: number };

const SIDES: Side[] = [
  { textAnchor: "start", dx: 11, dy: 0 },
  { textAnchor: "end", dx: -11, dy: 0 },
  { textAnchor: "middle", dx: 0, dy: -15 },
  { textAnchor: "middle", dx: 0, dy: 15 },
  { textAnchor: "start", dx: 7, dy: -13 },
  { textAnchor: "start", dx: 7, dy: 13 },
  { textAnchor: "end", dx: -7, dy: -13 },
  { textAnchor: "end", dx: -7, dy: 13 },
];

function boxOf(x: number, y: number, length: number, { textAnchor, dx, dy }: Side): Box {
  const left = x + dx - { start: 0, middle: 0.5, end: 1 }[textAnchor] * length;
  return [left, y + dy - HEIGHT / 2, left + length, y + dy + HEIGHT / 2];
}

const meets = (a: Box, b: Box) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];

/** Each name goes to the side where it covers fewest points and names; `points` are all that are drawn. */
export function labels(spots: Spot[], points: [x: number, y: number][], width: number, range: Range): Markish[] {
  const side = sideOf(width);
  const letters = side < NARROW ? LETTERS.narrow : LETTERS.wide;
  const { across, down } = pixels(width, range);
  const dots = points.map(([x, y]): Box => {
    const [left, top] = [across(x), down(y)];
    return [left - RING, top - RING, left + RING, top + RING];
  });
  const names: Box[] = [];
  const chosen = spots.map((spot) => {
    const words = short(spot.name, letters);
    const length = Math.min(letters, Array.from(spot.name).length) * LETTER;
    const tried = SIDES.map((place) => {
      const box = boxOf(across(spot.x), down(spot.y), length, place);
      const outside = box[0] < across(range[0]) || box[2] > side || box[1] < 0 || box[3] > down(range[0]);
      const covered = dots.filter((dot) => meets(dot, box)).length + 5 * names.filter((n) => meets(n, box)).length;
      return { place, box, cost: covered + (outside ? 1000 : 0) };
    });
    const best = tried.reduce((a, b) => (b.cost < a.cost ? b : a));
    names.push(best.box);
    return { ...spot, words, place: best.place };
  });
  return SIDES.map((place) =>
    text(
      chosen.filter((each) => each.place === place),
      { x: "x", y: "y", text: "words", ...place, fill: "currentColor", stroke: PAPER, strokeWidth: 4 },
    ),
  );
}

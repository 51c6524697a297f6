// A square chart of two shares, with both axes alike.
import { axisX, axisY, gridX, gridY, link, type Markish, plot } from "@observablehq/plot";
import { LETTER } from "./charts";
import { AXIS, COMMON, FAINT, NARROW } from "./chart-style";
import { percent } from "./format";

const LARGEST = 600;
const MARGINS = { marginLeft: 54, marginRight: 28, marginTop: 30, marginBottom: 50 };

export type Range = [low: number, high: number];

export interface Square {
  width: number; // what there is
  range: Range; // of both axes
  x: string;
  y: string;
  diagonal: boolean;
}

/** Pixels of the whole chart. */
export const sideOf = (width: number): number => Math.min(width, LARGEST);

/** From tenth to tenth, as far as the shares reach. */
export function rangeOf(shares: number[]): Range {
  let [least, most] = [1, 0];
  for (const share of shares) [least, most] = [Math.min(least, share), Math.max(most, share)];
  const low = Math.max(0, Math.min(Math.floor(10 * least), 9));
  const high = Math.min(10, Math.max(Math.ceil(10 * most), low + 1));
  return [low / 10, high / 10];
}

type Place = (share: number) => number;

/** Where a share lies, in pixels: across, and down. */
export function pixels(width: number, [low, high]: Range): { across: Place; down: Place } {
  const inner = sideOf(width) - MARGINS.marginLeft - MARGINS.marginRight;
  const part = (share: number) => (inner * (share - low)) / (high - low);
  return {
    across: (share) => MARGINS.marginLeft + part(share),
    down: (share) => MARGINS.marginTop + inner - part(share),
  };
}

/** How many letters a name in the text of an axis may have, beside so many others. */
export const lettersLeft = (width: number, others: number): number =>
  Math.max(4, Math.floor(sideOf(width) / LETTER) - others);

export function square({ width, range, x, y, diagonal }: Square, marks: Markish[]): Element {
  const side = sideOf(width);
  const ticks = side < NARROW ? 5 : 8;
  const grid = { ticks, stroke: FAINT, strokeOpacity: 1 };
  const axis = { ...AXIS, ticks, tickFormat: (v: number) => percent(v, 0) };
  const [low, high] = range;
  return plot({
    ...COMMON,
    ...MARGINS,
    width: side,
    height: side - MARGINS.marginLeft - MARGINS.marginRight + MARGINS.marginTop + MARGINS.marginBottom,
    x: { domain: range },
    y: { domain: range },
    marks: [
      gridX(grid),
      gridY(grid),
      diagonal ? link([0], { x1: low, y1: low, x2: high, y2: high, stroke: "var(--muted)", strokeWidth: 1 }) : null,
      axisX({ ...axis, label: x }),
      axisY({ ...axis, label: y }),
      ...marks,
    ],
  });
}

// From the coordinates of an image to pixels.
import type { Box, ObjectRow } from "./generated";

const EDGE = 12; // pixels around the box, so that marks at its edge are whole
const HIGHEST = 760; // pixels
const OBLONG = 6; // images are drawn in their own shape, unless they are longer than that

/** Pixels of places; y grows downwards. */
export interface Scale {
  width: number;
  height: number;
  across: number; // pixels a unit
  down: number;
  x: (value: number) => number;
  y: (value: number) => number;
}

export function scaleOf([left, top, right, bottom]: Box, width: number, zoom: number): Scale {
  const [wide, high] = [right - left || bottom - top || 1, bottom - top || right - left || 1];
  const shape = Math.min(OBLONG, Math.max(1 / OBLONG, high / wide));
  const inner = Math.min(width - 2 * EDGE, (HIGHEST - 2 * EDGE) / shape) * zoom;
  const [across, down] = [inner / wide, (inner * shape) / high];
  return {
    width: inner + 2 * EDGE,
    height: inner * shape + 2 * EDGE,
    across,
    down,
    x: (value) => EDGE + (value - left) * across,
    y: (value) => EDGE + (value - top) * down,
  };
}

/** How far an ellipse reaches, in pixels: it is never too small to be seen. */
export function extent({ ellipse }: ObjectRow, { across, down }: Scale): number {
  return Math.max(2, (ellipse?.[0] ?? 0) * Math.min(across, down));
}

const REACH = 12; // pixels around the centre of an object that belong to it, however small it is

/** How far a place in pixels is from an object: less than 1 if it is on it. */
export function distance({ x, y, ellipse }: ObjectRow, scale: Scale, [left, top]: [number, number]): number {
  const [right, below] = [left - scale.x(x), top - scale.y(y)];
  const near = Math.hypot(right, below) / REACH;
  if (!ellipse) return near;
  const turn = (ellipse[2] * Math.PI) / 180;
  const [dx, dy] = [right / scale.across, below / scale.down];
  const along = (dx * Math.cos(turn) + dy * Math.sin(turn)) / Math.max(ellipse[0], 1e-9);
  const beside = (dy * Math.cos(turn) - dx * Math.sin(turn)) / Math.max(ellipse[1], 1e-9);
  return Math.min(near, Math.hypot(along, beside));
}

/** Whether clicks in a box can be pixels of a picture of this size. */
export function fits(width: number, height: number, [left, top, right, bottom]: Box): boolean {
  const inside = left >= 0 && top >= 0 && right <= width + 1 && bottom <= height + 1;
  return inside && (right > width / 8 || bottom > height / 8);
}

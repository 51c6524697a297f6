// Clicks as marks on a canvas: where they lie, and how they are painted.
import type { Box, Images, ImageRow } from "./points-data";

const EDGE = 12; // pixels around the box, so that marks at its edge are whole
const HIGHEST = 760; // pixels
const OBLONG = 6; // images are drawn in their own shape, unless they are longer than that

/** From the coordinates of an image to pixels; y grows downwards. */
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

export type Colouring = "reliability" | "object";

/** Where steps of reliability end: each step has a colour and a size. */
export const STEPS = [0.5, 0.7, 0.8, 0.9];
const UNKNOWN = STEPS.length + 1;
const OBJECT_COLOURS = ["--cool", "--warm", "--green", "--violet", "--pink", "--teal", "--ochre"];
const PIXELS = 16e6; // of a canvas, at most

/** A colour between two, each as #rrggbb. */
export function mixed(from: string, to: string, part: number): string {
  const parts = [1, 3, 5].map((i) => {
    const [a, b] = [from, to].map((colour) => Number.parseInt(colour.slice(i, i + 2), 16)) as [number, number];
    return Math.round(a + (b - a) * part);
  });
  return `rgb(${parts.join(" ")})`;
}

export const stepOf = (reliability: number | null): number =>
  reliability === null ? UNKNOWN : STEPS.filter((end) => reliability >= end).length;

/** How large the marks of a step are, beside others: better workers have larger ones. */
export const sizeOf = (step: number): number => 0.8 + (0.45 * Math.min(step, STEPS.length)) / STEPS.length;

export type Colour = (name: string) => string;

/** Colours as they are where an element stands: in light, in dark, on paper, or over a picture. */
export function coloursOf(element: Element): Colour {
  const style = getComputedStyle(element);
  return (name) => style.getPropertyValue(name).trim();
}

export function stepColour(step: number, colour: Colour): string {
  return step === UNKNOWN ? colour("--muted") : mixed(colour("--warm"), colour("--cool"), step / STEPS.length);
}

/** Clicks that belong to no object. */
export const isOff = ({ object }: ImageRow["clicks"], i: number): boolean => object[i] === 0;

export interface Look {
  on: boolean; // clicks on objects are shown
  off: boolean; // and others
  colouring: Colouring;
  shown: Set<number>; // objects
}

/** Numbers of the clicks that are shown. */
export function visible({ clicks }: ImageRow, look: Look): number[] {
  return clicks.x.flatMap((_, i) => {
    const off = isOff(clicks, i);
    return (off ? look.off : look.on) ? [i] : [];
  });
}

/** Radius of a mark, in pixels: the less room there is for each, the smaller. */
const radiusOf = (many: number, { width, height }: Scale): number =>
  Math.min(4.2, Math.max(1.2, 0.26 * Math.sqrt((width * height) / Math.max(1, many))));

export function paint(canvas: HTMLCanvasElement, image: ImageRow, images: Images, scale: Scale, look: Look): void {
  const sharp = Math.min(window.devicePixelRatio || 1, Math.sqrt(PIXELS / (scale.width * scale.height)));
  canvas.width = Math.round(scale.width * sharp);
  canvas.height = Math.round(scale.height * sharp);
  const pen = canvas.getContext("2d");
  if (!pen) return;
  pen.scale(sharp, sharp);
  const { clicks } = image;
  const colour = coloursOf(canvas);
  const at = visible(image, look);
  const radius = radiusOf(at.length, scale);
  const groups = new Map<string, { fill: string | null; size: number; members: number[] }>();
  for (const i of at) {
    const off = isOff(clicks, i);
    const step = stepOf(images.reliability[clicks.worker[i]!] ?? null);
    const hue = OBJECT_COLOURS[clicks.object[i]! % OBJECT_COLOURS.length]!;
    const key = off ? "off" : look.colouring === "object" ? hue : String(step);
    let group = groups.get(key);
    if (!group) {
      const fill = off ? null : look.colouring === "object" ? colour(hue) : stepColour(step, colour);
      group = { fill, size: look.colouring === "object" || off ? radius : radius * sizeOf(step), members: [] };
      groups.set(key, group);
    }
    group.members.push(i);
  }
  if (look.colouring === "object" && look.on) spokes(pen, image, at, scale, look, colour);
  const circles = (members: number[], r: number) => {
    pen.beginPath();
    for (const i of members) {
      const [x, y] = [scale.x(clicks.x[i]!), scale.y(clicks.y[i]!)];
      pen.moveTo(x + r, y);
      pen.arc(x, y, r, 0, 2 * Math.PI);
    }
  };
  // Rings of clicks on no object lie below, the best workers on top.
  const order = [...groups.keys()].sort((a, b) => (a === "off" ? -1 : b === "off" ? 1 : a < b ? -1 : 1));
  for (const key of order) {
    const { fill, size, members } = groups.get(key)!;
    circles(members, size);
    pen.lineWidth = size < 2 ? 1 : fill === null ? 3 : 1.6;
    pen.strokeStyle = colour("--halo");
    pen.stroke();
    if (fill === null) {
      pen.lineWidth = 1.3;
      pen.strokeStyle = colour("--muted");
      pen.stroke();
    } else {
      pen.fillStyle = fill;
      pen.fill();
    }
  }
}

/** A thin line from each click to the centre of its object, so that no colour is needed to tell them. */
function spokes(pen: CanvasRenderingContext2D, image: ImageRow, at: number[], scale: Scale, look: Look, colour: Colour): void {
  const centre = new Map(image.objects.map((o) => [o.object, o]));
  pen.beginPath();
  for (const i of at) {
    const object = centre.get(image.clicks.object[i]!);
    if (!object || !look.shown.has(object.object) || isOff(image.clicks, i)) continue;
    pen.moveTo(scale.x(image.clicks.x[i]!), scale.y(image.clicks.y[i]!));
    pen.lineTo(scale.x(object.x), scale.y(object.y));
  }
  pen.lineWidth = 1;
  pen.strokeStyle = colour("--ink");
  pen.globalAlpha = 0.55;
  pen.stroke();
  pen.globalAlpha = 1;
}

// Clicks as marks on a canvas.
import { cleared, type Colour, coloursOf, radiusOf } from "./canvas";
import type { Clicks, Images, ImageRow } from "./generated";
import type { Scale } from "./stage-scale";

export type Colouring = "reliability" | "object";

export interface Look {
  on: boolean; // clicks on objects are shown
  off: boolean; // and others
  colouring: Colouring;
  objects: Set<number>; // that are shown
}

/** Where steps of reliability end: each step has a colour and a size. */
export const STEPS = [0.5, 0.7, 0.8, 0.9];
const UNKNOWN = STEPS.length + 1;
const OBJECT_COLOURS = ["--cool", "--warm", "--green", "--violet", "--pink", "--teal", "--ochre"];

const stepOf = (reliability: number | null): number =>
  reliability === null ? UNKNOWN : STEPS.filter((end) => reliability >= end).length;

/** How large the marks of a step are, beside others: better workers have larger ones. */
export const sizeOf = (step: number): number => 0.8 + (0.45 * Math.min(step, STEPS.length)) / STEPS.length;

/** A colour between two, each as #rrggbb. */
function mixed(from: string, to: string, part: number): string {
  const parts = [1, 3, 5].map((i) => {
    const [a, b] = [from, to].map((colour) => Number.parseInt(colour.slice(i, i + 2), 16)) as [number, number];
    return Math.round(a + (b - a) * part);
  });
  return `rgb(${parts.join(" ")})`;
}

const stepColour = (step: number, colour: Colour): string =>
  step === UNKNOWN ? colour("--muted") : mixed(colour("--warm"), colour("--cool"), step / STEPS.length);

/** Clicks that belong to no object. */
export const isOff = ({ object }: Clicks, i: number): boolean => object[i] === 0;

/** Numbers of the clicks that are shown. */
export function visible({ clicks }: ImageRow, { on, off }: Look): number[] {
  return clicks.x.flatMap((_, i) => ((isOff(clicks, i) ? off : on) ? [i] : []));
}

interface Group {
  layer: number; // what is drawn later lies above
  fill: string | null; // null: a ring
  radius: number;
  members: number[];
}

/** Clicks that are painted alike, in the order to paint. */
function groupsOf(image: ImageRow, images: Images, look: Look, scale: Scale, colour: Colour): Group[] {
  const { clicks } = image;
  const shown = visible(image, look);
  const radius = radiusOf(shown.length, scale);
  const groups = new Map<number, Group>();
  for (const i of shown) {
    const off = isOff(clicks, i);
    const hue = clicks.object[i]! % OBJECT_COLOURS.length;
    const step = stepOf(images.reliability[clicks.worker[i]!] ?? null);
    const layer = off ? -1 : look.colouring === "object" ? hue : step;
    const group = groups.get(layer) ?? { layer, fill: null, radius, members: [] };
    if (!groups.has(layer) && !off) {
      const byObject = look.colouring === "object";
      group.fill = byObject ? colour(OBJECT_COLOURS[hue]!) : stepColour(step, colour);
      group.radius = byObject ? radius : radius * sizeOf(step);
    }
    groups.set(layer, group);
    group.members.push(i);
  }
  return [...groups.values()].sort((a, b) => a.layer - b.layer);
}

/** Paints the clicks of an image, sharp on any screen. */
export function paint(canvas: HTMLCanvasElement, image: ImageRow, images: Images, scale: Scale, look: Look): void {
  const pen = cleared(canvas, scale);
  if (!pen) return;
  const colour = coloursOf(canvas);
  if (look.colouring === "object" && look.on) spokes(pen, image, scale, look, colour);
  for (const { fill, radius, members } of groupsOf(image, images, look, scale, colour)) {
    pen.beginPath();
    for (const i of members) {
      const [x, y] = [scale.x(image.clicks.x[i]!), scale.y(image.clicks.y[i]!)];
      pen.moveTo(x + radius, y);
      pen.arc(x, y, radius, 0, 2 * Math.PI);
    }
    pen.lineWidth = radius < 2 ? 1 : fill === null ? 3 : 1.6;
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

/** A thin line from each click to the centre of its object, so that colour is not needed. */
function spokes(pen: CanvasRenderingContext2D, image: ImageRow, scale: Scale, look: Look, colour: Colour): void {
  const { clicks } = image;
  const centre = new Map(image.objects.filter((o) => look.objects.has(o.object)).map((o) => [o.object, o]));
  pen.beginPath();
  clicks.object.forEach((object, i) => {
    const to = centre.get(object);
    if (!to) return;
    pen.moveTo(scale.x(clicks.x[i]!), scale.y(clicks.y[i]!));
    pen.lineTo(scale.x(to.x), scale.y(to.y));
  });
  pen.lineWidth = 1;
  pen.strokeStyle = colour("--ink");
  pen.globalAlpha = 0.55;
  pen.stroke();
  pen.globalAlpha = 1;
}

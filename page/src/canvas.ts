// What pictures on a canvas share: a sharp pen, the page's colours, the size of marks, and walking them by keys.

const PIXELS = 16e6; // of a canvas, at most
const EDGE = 20; // pixels from the edge of a box within which a place counts as not seen

interface Size {
  width: number;
  height: number;
}

export type Colour = (name: string) => string;

/** Colours as they are where an element stands: in light, in dark, on paper, or over a picture. */
export function coloursOf(element: Element): Colour {
  const style = getComputedStyle(element);
  return (name) => style.getPropertyValue(name).trim();
}

/** An empty canvas of this size, sharp on any screen, and what draws on it. */
export function cleared(canvas: HTMLCanvasElement, { width, height }: Size): CanvasRenderingContext2D | null {
  const sharp = Math.min(window.devicePixelRatio || 1, Math.sqrt(PIXELS / (width * height)));
  canvas.width = Math.round(width * sharp);
  canvas.height = Math.round(height * sharp);
  const pen = canvas.getContext("2d");
  pen?.scale(sharp, sharp);
  return pen;
}

/** Radius of a mark, in pixels: the less room there is for each, the smaller. */
export const radiusOf = (many: number, { width, height }: Size): number =>
  Math.min(4.2, Math.max(1.2, 0.26 * Math.sqrt((width * height) / Math.max(1, many))));

/** Where a key leads in a list: a number of steps, or all the way. */
export function stepOf({ key, ctrlKey, metaKey, altKey }: KeyboardEvent, page: number): number | null {
  if (ctrlKey || metaKey || altKey) return null;
  const steps: Record<string, number> = {
    ArrowRight: 1,
    ArrowDown: 1,
    ArrowLeft: -1,
    ArrowUp: -1,
    PageDown: page,
    PageUp: -page,
    Home: -Infinity,
    End: Infinity,
  };
  return steps[key] ?? null;
}

export const within = (place: number, length: number): number => Math.min(length - 1, Math.max(0, place));

/** Scrolls a box, where what it holds is larger, until a place can be seen. */
export function bring(box: HTMLElement, left: number, top: number): void {
  if (Math.abs(left - box.scrollLeft - box.clientWidth / 2) > box.clientWidth / 2 - EDGE) {
    box.scrollLeft = left - box.clientWidth / 2;
  }
  if (Math.abs(top - box.scrollTop - box.clientHeight / 2) > box.clientHeight / 2 - EDGE) {
    box.scrollTop = top - box.clientHeight / 2;
  }
}

/** Calls `draw` when colours or sizes change: for paper, and between light and dark. */
export function onLook(draw: () => void): void {
  for (const query of ["print", "(prefers-color-scheme: dark)"]) {
    window.matchMedia(query).addEventListener("change", draw);
  }
}

export const onPaper = (): boolean => window.matchMedia("print").matches;

// The colour, the dash and the symbol of each method in a chart.
import { COOL, WARM } from "./chart-style";
import { svg } from "./dom";
import { sample } from "./figure";

export interface Style {
  colour: string;
  dash: string | undefined;
  symbol: "circle" | "square" | "triangle" | "diamond" | "cross" | "star" | "wye" | "times";
  outline: string; // the symbol again, for keys: around 0, 0
}

const STYLES: Style[] = [
  { colour: COOL, dash: undefined, symbol: "circle", outline: "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0z" },
  { colour: WARM, dash: "6 4", symbol: "square", outline: "M-4-4h8v8h-8z" },
  { colour: "var(--green)", dash: "2 3", symbol: "triangle", outline: "M0-5.2L5.2 3.8H-5.2z" },
  { colour: "var(--violet)", dash: "10 3 2 3", symbol: "diamond", outline: "M0-6.5L3.8 0L0 6.5L-3.8 0z" },
  {
    colour: "var(--pink)",
    dash: "12 5",
    symbol: "cross",
    outline: "M-1.8-5.4h3.6v3.6h3.6v3.6h-3.6v3.6h-3.6v-3.6h-3.6v-3.6h3.6z",
  },
  {
    colour: "var(--teal)",
    dash: "6 3 2 3 2 3",
    symbol: "star",
    outline: "M0-6L1.4-1.9L5.7-1.9L2.2.7L3.5 4.9L0 2.4L-3.5 4.9L-2.2.7L-5.7-1.9L-1.4-1.9z",
  },
  {
    colour: "var(--ochre)",
    dash: "3 6",
    symbol: "wye",
    outline: "M1.7 1v4.3h-3.4v-4.3l-3.7-2.2l1.7-2.9l3.7 2.1l3.7-2.1l1.7 2.9z",
  },
  { colour: "currentColor", dash: "14 3 4 3", symbol: "times", outline: "M-4-4l8 8M4-4l-8 8" },
];

/** The style of the method at this place. */
export const styleOf = (place: number): Style => STYLES[place % STYLES.length]!;

/** How a symbol is painted: filled, or drawn where it has no inside. */
export function paint({ colour, symbol }: Style): { fill: string; stroke?: string; strokeWidth?: number } {
  return symbol === "times" ? { fill: "none", stroke: colour, strokeWidth: 2 } : { fill: colour };
}

/** A symbol for a key, at the middle of a picture of this width. */
function symbolMark(style: Style, width: number): SVGElement {
  const { fill, stroke, strokeWidth } = paint(style);
  const place = `translate(${width / 2} 7)`;
  return svg("path", { d: style.outline, transform: place, fill, stroke, "stroke-width": strokeWidth });
}

export const symbolSample = (style: Style): SVGElement => sample(16, symbolMark(style, 16));

export function lineSample(style: Style, thick: number): SVGElement {
  const line = svg("path", {
    d: "M0 7h40",
    fill: "none",
    stroke: style.colour,
    "stroke-width": thick,
    "stroke-dasharray": style.dash,
  });
  return sample(40, line, symbolMark(style, 40));
}

export const ringSample = (): SVGElement =>
  sample(16, svg("circle", { cx: 8, cy: 7, r: 5.5, class: "mark-ink hollow" }));

export const tickSample = ({ colour }: Style): SVGElement =>
  sample(16, svg("path", { d: "M3 0v14M8 0v14M13 0v14", fill: "none", stroke: colour, "stroke-width": 2 }));

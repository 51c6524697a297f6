// A chart in its frame: its headline, what its marks mean, the chart, and the same numbers as a table.
import { type Child, el, sentence, svg } from "./dom";
import { type Head, table } from "./table";

const PRINTED = 680; // pixels of a printed line, about

export type Draw = (width: number) => Element;

export interface Chart {
  label: string; // short, for those who cannot see it
  headline: string;
  draw: Draw;
  heads: Head[];
  rows: Child[][];
  key?: HTMLElement;
}

interface Frame {
  box: HTMLElement;
  draw: (width: number) => void;
  width: number;
}

const frames = new Map<Element, Frame>();
let waiting = 0;

function redraw(frame: Frame, width: number): void {
  if (width < 1 || Math.abs(width - frame.width) < 1) return;
  frame.width = width;
  frame.draw(width);
}

function redrawAll(): void {
  for (const frame of frames.values()) redraw(frame, frame.box.clientWidth);
}

const watcher = new ResizeObserver(() => {
  window.clearTimeout(waiting);
  waiting = window.setTimeout(redrawAll, 120);
});
window.addEventListener("beforeprint", () => {
  for (const frame of frames.values()) redraw(frame, Math.min(PRINTED, frame.width));
});
window.addEventListener("afterprint", redrawAll);

/** Calls `draw` with the width of a box: when the page is drawn, when the width changes, and for paper. */
export function onWidth(box: HTMLElement, draw: (width: number) => void): void {
  frames.set(box, { box, draw, width: 0 });
  watcher.observe(box);
}

function drawChart(box: HTMLElement, { label, draw }: Chart, width: number): void {
  try {
    const drawn = draw(width);
    // The chart is one picture with one name; Plot's names of its parts are not for readers.
    for (const part of drawn.querySelectorAll("[aria-label]")) part.removeAttribute("aria-label");
    drawn.setAttribute("role", "img");
    drawn.setAttribute("aria-label", label);
    box.replaceChildren(drawn);
  } catch (problem) {
    console.error(label, problem);
    box.replaceChildren(sentence("This chart could not be drawn; its table holds the numbers."));
  }
}

/** The figure of a chart; it is drawn by `drawFigures`, when it stands in the page and has a width. */
export function figure(chart: Chart): HTMLElement {
  const box = el("div", { class: "chart" });
  onWidth(box, (width) => drawChart(box, chart, width));
  return el(
    "figure",
    {},
    el("figcaption", {}, chart.headline),
    chart.key,
    box,
    el("details", { class: "twin" }, el("summary", {}, "Show as table"), table(chart.label, chart.heads, chart.rows)),
  );
}

export const drawFigures = redrawAll;

export type Mark = "ring" | "dot" | "cross" | "line" | "dashes" | "points" | "outline" | "band";

const MARKS: Record<Mark, () => SVGElement> = {
  ring: () => svg("circle", { cx: 12, cy: 7, r: 4.5, class: "mark-warm hollow" }),
  dot: () => svg("circle", { cx: 12, cy: 7, r: 5, class: "mark-cool full" }),
  cross: () => svg("path", { d: "M8 3l8 8M16 3l-8 8", class: "mark-warm hollow" }),
  line: () => svg("path", { d: "M0 7h24", class: "mark-cool hollow" }),
  dashes: () => svg("path", { d: "M0 7h24", class: "mark-warm hollow", "stroke-dasharray": "6 4" }),
  points: () => svg("path", { d: "M0 7h24", class: "mark-ink hollow", "stroke-dasharray": "2 3" }),
  band: () => svg("rect", { x: 0, y: 1, width: 24, height: 12, class: "mark-cool full", "fill-opacity": 0.18 }),
  outline: () => svg("rect", { x: 5, y: 1, width: 14, height: 12, class: "mark-ink hollow" }),
};

/** A small picture of a mark. */
export function sample(width: number, ...marks: SVGElement[]): SVGElement {
  return svg("svg", { width, height: 14, "aria-hidden": "true" }, ...marks);
}

/** What the marks of a chart mean: shapes differ, not only colours. */
export function key(...items: [Mark | SVGElement, Child][]): HTMLElement {
  const entries = items.map(([mark, text]) =>
    el("li", {}, typeof mark === "string" ? sample(24, MARKS[mark]()) : mark, text),
  );
  return el("ul", { class: "key" }, ...entries);
}

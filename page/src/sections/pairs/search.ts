// How the clusters were found: the shares of components as a map of heat, and the search.
import { axisX, axisY, cell, plot } from "@observablehq/plot";
import { AXIS, COMMON, COOL, NARROW } from "../../chart-style";
import { type Child, svg } from "../../dom";
import { figure, key, sample } from "../../figure";
import { count, percent } from "../../format";
import type { Shares, Training } from "../../generated";
import { searchFigure } from "../../search";
import { number } from "../../table";

const STEPS = [0, 0.25, 0.5, 1]; // of the largest share, in the key
const ROW = { least: 5, most: 14 }; // pixels of a row
const HIGH = 400; // pixels of all rows, about

interface Cell {
  epoch: number; // place
  component: number; // place
  share: number;
}

const most = ({ rows }: Shares): number => Math.max(1e-9, ...rows.flat());

/** How strong a share is painted; the root lets small ones be seen. */
const strength = (share: number, top: number): number => Math.sqrt(Math.min(1, Math.max(0, share / top)));

function drawShares(shares: Shares, width: number): Element {
  const { epochs, components, rows } = shares;
  const top = most(shares);
  const cells = rows.flatMap((row, epoch) => row.map((share, component): Cell => ({ epoch, component, share })));
  const few = (length: number, labels: number) => {
    const every = Math.ceil(length / labels);
    return Array.from({ length }, (_, i) => i).filter((i) => i % every === 0);
  };
  const row = Math.min(ROW.most, Math.max(ROW.least, HIGH / epochs.length));
  return plot({
    ...COMMON,
    width,
    height: row * epochs.length + 78,
    marginLeft: 54,
    marginRight: 12,
    marginTop: 28,
    marginBottom: 50,
    x: { type: "band", domain: components.map((_, k) => k), padding: 0.06 },
    y: { type: "band", domain: epochs.map((_, s) => s), padding: row < 8 ? 0 : 0.06 },
    marks: [
      axisX({
        ...AXIS,
        ticks: few(components.length, width < NARROW ? 8 : 25),
        tickFormat: (k: number) => count(components[k] ?? 0),
        label: "components, by their share at the end",
        labelOffset: 40,
      }),
      axisY({
        ...AXIS,
        ticks: few(epochs.length, 8),
        tickFormat: (s: number) => count(epochs[s] ?? 0),
        label: "after iteration",
      }),
      cell(cells, { x: "component", y: "epoch", fill: "var(--faint)", fillOpacity: 0.5 }),
      cell(
        cells.filter((c) => c.share > 0),
        {
          x: "component",
          y: "epoch",
          fill: COOL,
          fillOpacity: (c: Cell) => strength(c.share, top),
          title: (c: Cell) =>
            `after iteration ${count(epochs[c.epoch]!)}: component ${count(components[c.component]!)} has ${percent(c.share)}`,
        },
      ),
    ],
    opacity: { type: "identity" },
  });
}

function keyOf(shares: Shares): HTMLElement {
  const top = most(shares);
  const steps = STEPS.map((part): [SVGElement, Child] => {
    const square = { x: 1, y: 1, width: 22, height: 12 };
    const ground = svg("rect", { ...square, fill: "var(--faint)", "fill-opacity": 0.5 });
    const shade = svg("rect", { ...square, fill: COOL, "fill-opacity": strength(part * top, top) });
    return [sample(24, ground, shade), part ? percent(part * top) : "no share"];
  });
  return key(...steps);
}

function sharesFigure(shares: Shares): HTMLElement {
  const { epochs, components, rows, headline } = shares;
  return figure({
    label: "Share of each component as the search went on",
    headline,
    key: keyOf(shares),
    draw: (width) => drawShares(shares, width),
    heads: [number("After iteration"), ...components.map((k) => number(`Component ${count(k)}`))],
    rows: epochs.map((epoch, s) => [count(epoch), ...rows[s]!.map((share) => percent(share))]),
  });
}

export function draw({ search, shares }: Training): HTMLElement[] {
  return [...(shares ? [sharesFigure(shares)] : []), ...(search ? searchFigure(search, "clusters") : [])];
}

// The colour and the shape of each cluster in the map.
import { svg } from "./dom";
import { sample } from "./figure";

const COLOURS = [
  "--cool",
  "--warm",
  "--green",
  "--violet",
  "--ochre",
  "--magenta",
  "--teal",
  "--red",
  "--navy",
  "--lime",
  "--pink",
  "--brown",
];
export const COLOURED = COLOURS.length; // clusters with a colour of their own; further ones are grey

type Place = [x: number, y: number];

/** Corners of the shapes, for a mark of radius 1; the first is round. */
const SHAPES: Place[][] = [
  [],
  [[-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]],
  [[0, -1.25], [1.15, 0.85], [-1.15, 0.85]],
  [[0, -1.35], [1.1, 0], [0, 1.35], [-1.1, 0]],
]; // prettier-ignore

export const colourOf = (cluster: number): string => COLOURS[cluster - 1] ?? "--muted";
const cornersOf = (cluster: number): Place[] => (cluster > COLOURED ? [] : SHAPES[(cluster - 1) % SHAPES.length]!);

/** Adds the mark of a cluster to what the pen is about to draw. */
export function trace(pen: CanvasRenderingContext2D, cluster: number, [x, y]: Place, radius: number): void {
  const corners = cornersOf(cluster);
  if (!corners.length) {
    pen.moveTo(x + radius, y);
    pen.arc(x, y, radius, 0, 2 * Math.PI);
    return;
  }
  corners.forEach(([right, down], i) => pen[i ? "lineTo" : "moveTo"](x + right * radius, y + down * radius));
  pen.closePath();
}

/** The mark of a cluster, for a key. */
export function clusterSample(cluster: number): SVGElement {
  const fill = `var(${colourOf(cluster)})`;
  const corners = cornersOf(cluster).map(([x, y]) => `${8 + 4.5 * x},${7 + 4.5 * y}`);
  const mark = corners.length
    ? svg("polygon", { points: corners.join(" "), fill })
    : svg("circle", { cx: 8, cy: 7, r: 4.5, fill });
  return sample(16, mark);
}

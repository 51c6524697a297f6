// The map of the items: marks on a canvas, with details by pointer and keyboard.
import { bring, cleared, type Colour, coloursOf, onLook, onPaper, radiusOf, stepOf, within } from "./canvas";
import { type Child, el, name, svg } from "./dom";
import { framed } from "./edges";
import { onWidth } from "./figure";
import { count, percent, plain, plural } from "./format";
import type { Dots, ItemMap } from "./generated";
import { colourOf, trace } from "./pairs-style";
import { scaleOf } from "./stage-scale";
import { tip as makeTip } from "./tip";

const NEAR = 8; // pixels within which a mark is meant
const PAGE = 10; // marks that "page up" and "page down" move by
const LEAST = 0.01; // probability of another cluster that is worth a word
const NUMBERED = 60; // clusters that have their number in the picture, at most
const LETTER = { wide: 7, high: 17 }; // pixels

export interface Wanted {
  cluster: number; // 0: all
  doubtful: boolean; // these only
  zoom: number;
}

export interface Cloud {
  node: HTMLElement;
  update: () => void; // what is wanted has changed
  choose: (dot: number | null) => void;
}

export const isDoubtful = ({ dots, doubtful }: ItemMap, i: number): boolean => (dots.probability[i] ?? 0) < doubtful;

/** Whether a mark is one of those that are looked for. */
export const isWanted = (map: ItemMap, i: number, { cluster, doubtful }: Wanted): boolean =>
  (!cluster || map.dots.cluster[i] === cluster) && (!doubtful || isDoubtful(map, i));

/** Of an item: how sure its cluster is, and which could be another. */
export function sureWords({ cluster, probability, second, second_probability }: Dots, i: number): string[] {
  const p = probability[i] ?? null;
  const [other, q] = [second[i] ?? null, second_probability[i] ?? null];
  const then = other !== null && q !== null && q >= LEAST ? `next: cluster ${count(other)}, probability ${percent(q)}` : "";
  return [`cluster ${count(cluster[i]!)}${p === null ? "" : `, probability ${percent(p)}`}`, then];
}

export const answersWords = ({ answers }: Dots, i: number): string =>
  answers[i] ? plural(answers[i]!, "answer") : "placed by its features alone";

/** The picture; `pictureOf` gives small images of items, `pick` is called with marks that are clicked. */
export function cloud(
  map: ItemMap,
  wanted: Wanted,
  pictureOf: (dot: number) => string | null,
  pick: (dot: number) => void,
): Cloud {
  const { dots } = map;
  const canvas = el("canvas", { role: "slider", tabindex: 0, "aria-valuemin": 1, "aria-label": "Items" });
  const rings = svg("g", { class: "rings" });
  const overlay = svg("svg", { class: "objects", "aria-hidden": "true" }, rings);
  const tip = makeTip(() => node);
  const inner = el("div", { class: "stage" }, canvas, overlay, tip.node);
  const node = el("div", { class: "stage-box" }, inner);

  let width = 0;
  let scale = scaleOf(map.box, 300, 1);
  let shown: number[] = []; // places in `dots`, the most doubtful first
  let current = -1; // place in `shown` of the one that keys have reached
  let chosen: number | null = null;

  const at = (i: number): [number, number] => [scale.x(dots.x[i]!), scale.y(-dots.y[i]!)];

  function layout(): void {
    if (width < 1) return;
    scale = scaleOf(map.box, width, onPaper() ? 1 : wanted.zoom);
    for (const each of [inner, canvas]) {
      each.style.width = `${scale.width}px`;
      each.style.height = `${scale.height}px`;
    }
    overlay.setAttribute("width", String(scale.width));
    overlay.setAttribute("height", String(scale.height));
    shown = dots.x.flatMap((_, i) => (isWanted(map, i, wanted) ? [i] : []));
    current = Math.min(current, shown.length - 1);
    paint();
    describe();
    hide();
  }

  // ------------------------------------------------------------------------------------------------------ painting

  function paint(): void {
    const pen = cleared(canvas, scale);
    if (!pen) return;
    const colour = coloursOf(canvas);
    const radius = radiusOf(dots.x.length, scale);
    const mine = new Set(shown);
    const others = dots.x.flatMap((_, i) => (mine.has(i) ? [] : [i]));
    if (others.length) blot(pen, others, 0, 0.8 * radius, colour("--line"), null);
    // The largest cluster lies lowest, and what is doubtful above what is not.
    for (const [cluster, members] of grouped(shown)) {
      blot(pen, members.reverse(), cluster, radius, colour(colourOf(cluster)), colour("--halo"));
    }
    circle(pen, shown.filter((i) => isDoubtful(map, i)), radius, [colour("--halo"), colour("--ink")]);
    number(pen, colour);
  }

  function grouped(members: number[]): [number, number[]][] {
    const groups = new Map<number, number[]>();
    for (const i of members) {
      const cluster = dots.cluster[i]!;
      groups.get(cluster)?.push(i) ?? groups.set(cluster, [i]);
    }
    return [...groups].sort(([a], [b]) => a - b);
  }

  /** Marks that look alike; cluster 0 is a round one. */
  function blot(
    pen: CanvasRenderingContext2D,
    members: number[],
    cluster: number,
    radius: number,
    fill: string,
    halo: string | null,
  ): void {
    pen.beginPath();
    for (const i of members) trace(pen, cluster || Infinity, at(i), radius);
    if (halo !== null) {
      pen.lineWidth = radius < 2 ? 0.6 : 1;
      pen.strokeStyle = halo;
      pen.stroke();
    }
    pen.fillStyle = fill;
    pen.fill();
  }

  function circle(pen: CanvasRenderingContext2D, members: number[], radius: number, colours: string[]): void {
    pen.beginPath();
    for (const i of members) trace(pen, Infinity, at(i), radius < 3 ? radius + 1.6 : radius + 2.4);
    colours.forEach((colour, layer) => {
      pen.lineWidth = (layer ? 1.2 : 2.6) * (radius < 3 ? 0.8 : 1);
      pen.strokeStyle = colour;
      pen.stroke();
    });
  }

  /** The number of each cluster, at the item nearest to its middle, unless it would cover another number. */
  function number(pen: CanvasRenderingContext2D, colour: Colour): void {
    pen.font = "600 12px system-ui, sans-serif";
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    const taken: [number, number, number][] = [];
    for (const [cluster, members] of grouped(shown).slice(0, NUMBERED)) {
      const [x, y] = middle(members);
      const text = String(cluster);
      const [half, high] = [(text.length * LETTER.wide) / 2 + 4, LETTER.high];
      if (taken.some(([a, b, h]) => Math.abs(a - x) < h + half && Math.abs(b - y) < high)) continue;
      taken.push([x, y, half]);
      pen.fillStyle = colour("--halo");
      pen.fillRect(x - half, y - high / 2, 2 * half, high);
      pen.lineWidth = 1.5;
      pen.strokeStyle = colour(colourOf(cluster));
      pen.strokeRect(x - half, y - high / 2, 2 * half, high);
      pen.fillStyle = colour("--ink");
      pen.fillText(text, x, y + 0.5);
    }
  }

  function middle(members: number[]): [number, number] {
    const places = members.map(at);
    const mean = [0, 1].map((axis) => places.reduce((sum, place) => sum + place[axis]!, 0) / places.length);
    const far = ([x, y]: [number, number]) => Math.hypot(x - mean[0]!, y - mean[1]!);
    return places.reduce((best, place) => (far(place) < far(best) ? place : best));
  }

  // ------------------------------------------------------------------------------------------------------- telling

  function ring(dot: number | null = null): void {
    const mark = (i: number, r: number, of: string) => {
      const [cx, cy] = at(i);
      return svg("circle", { class: of, cx, cy, r });
    };
    rings.replaceChildren(
      ...(chosen === null ? [] : [mark(chosen, 11, "find halo"), mark(chosen, 11, "find")]),
      ...(dot === null ? [] : [mark(dot, 8, "now")]),
    );
  }

  function tell(i: number): void {
    const picture = pictureOf(i);
    const [sure, other] = sureWords(dots, i);
    const lines: Child[][] = [
      [picture !== null && el("img", { src: picture, alt: "" })],
      [el("strong", {}, name(dots.item[i]!))],
      [sure, isDoubtful(map, i) && " (doubtful)"],
      [other],
      [answersWords(dots, i)],
    ];
    tip.show(...at(i), lines);
    ring(i);
  }

  function hide(): void {
    tip.hide();
    ring();
  }

  /** Describes the canvas to screen readers. */
  function describe(): void {
    canvas.setAttribute("aria-disabled", String(!shown.length));
    canvas.setAttribute("aria-valuemax", String(Math.max(1, shown.length)));
    canvas.setAttribute("aria-valuenow", String(Math.max(1, current + 1)));
    const all = shown.length ? `${plural(shown.length, "item")}; use the arrow keys` : "no item is shown";
    const one = (i: number) => `${plain(dots.item[i]!)}: ${sureWords(dots, i)[0]}, ${answersWords(dots, i)}`;
    canvas.setAttribute("aria-valuetext", current < 0 ? all : one(shown[current]!));
  }

  function under(event: MouseEvent): number | null {
    const corner = inner.getBoundingClientRect();
    const [x, y] = [event.clientX - corner.left, event.clientY - corner.top];
    let [found, nearest]: [number | null, number] = [null, NEAR];
    for (const i of shown) {
      const [left, top] = at(i);
      const far = Math.hypot(left - x, top - y);
      if (far < nearest) [found, nearest] = [i, far];
    }
    return found;
  }

  function tellUnder(event: MouseEvent): void {
    const dot = under(event);
    inner.classList.toggle("on-object", dot !== null);
    if (dot === null) hide();
    else tell(dot);
  }

  inner.addEventListener("pointermove", tellUnder);
  inner.addEventListener("pointerleave", hide);
  inner.addEventListener("focusout", hide);
  inner.addEventListener("click", (event) => {
    const dot = under(event);
    if (dot !== null) pick(dot);
    tellUnder(event);
  });
  canvas.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
    const press = event.key === "Enter" || event.key === " ";
    const step = stepOf(event, PAGE);
    if ((step === null && !press) || !shown.length) return;
    event.preventDefault();
    current = within(current + (step ?? 0), shown.length);
    describe();
    const dot = shown[current]!;
    if (press) pick(dot);
    bring(node, ...at(dot));
    tell(dot);
  });

  onWidth(node, (now) => {
    width = now;
    layout();
  });
  onLook(layout);
  return {
    node: framed(node),
    update: layout,
    choose: (dot) => {
      chosen = dot;
      ring();
      if (dot !== null) bring(node, ...at(dot));
    },
  };
}


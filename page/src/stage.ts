// One image: its picture, the clicks on a canvas, the objects as ellipses; walked by pointer and by keys.
import { type Child, el, name, svg } from "./dom";
import { onWidth } from "./figure";
import { count, decimal, percent, plain, plural, significant } from "./format";
import type { Box, Images, ImageRow, ObjectRow } from "./points-data";
import { type Colouring, isOff, type Look, paint, scaleOf, visible } from "./stage-marks";

const NEAR = 6; // pixels within which a click is meant
const REACH = 9; // and an object, around its centre
const PAGE = 10; // clicks that "page up" and "page down" walk
const [LETTER, HIGH] = [6.5, 12]; // pixels of a digit
const CORNERS = [[true, false], [true, true], [false, false], [false, true]] as const; // right, below
const LINES = 12; // pixels from which an ellipse has room for lines
const NUMBERS = 1500; // objects up to which their workers are told beside them
const ROOM = 1100; // square pixels an object from which there is room for numbers

export interface Wanted {
  clicks: boolean;
  objects: boolean;
  off: boolean; // clicks on no object
  picture: boolean;
  colouring: Colouring;
  least: number; // probability of objects
  zoom: number;
}

export interface Stage {
  node: HTMLElement;
  show: (image: ImageRow) => void;
  update: () => void;
  choose: (object: ObjectRow | null) => void;
}

export const isShown = (object: ObjectRow, wanted: Wanted): boolean => (object.probability ?? 0) >= wanted.least;

/** An object in a few words. */
export function objectWords({ object, probability, supporters, doubtful }: ObjectRow): string {
  const sure = probability === null ? "" : `, probability ${percent(probability)}${doubtful ? " (doubtful)" : ""}`;
  return `Object ${object}${supporters === null ? "" : `, ${plural(supporters, "worker")}`}${sure}`;
}

/** Where the clicks on an object are told to belong, in words. */
function clickWords({ clicks }: ImageRow, i: number): string {
  const [object, sure, outlier] = [clicks.object[i]!, clicks.probability[i] ?? null, clicks.outlier[i] ?? null];
  if (isOff(clicks, i)) return `on no object${outlier === null ? "" : ` (probability ${percent(outlier)})`}`;
  return `on object ${object}${sure === null ? "" : ` (probability ${percent(sure)})`}`;
}

export function stage(images: Images, wanted: Wanted, chosen: (object: ObjectRow) => void): Stage {
  const picture = el("img", { class: "picture", alt: "", draggable: "false" });
  const canvas = el("canvas", { role: "slider", tabindex: 0, "aria-valuemin": 1, "aria-label": "Clicks" });
  const ellipses = svg("g", { role: "group" });
  const rings = svg("g", { class: "rings", "aria-hidden": "true" });
  const numbers = svg("g", { class: "numbers", "aria-hidden": "true" });
  const overlay = svg("svg", { class: "objects" }, ellipses, numbers, rings);
  const tip = el("div", { class: "tip", "aria-hidden": "true", hidden: true });
  const inner = el("div", { class: "stage" }, picture, canvas, overlay, tip);
  const node = el("div", { class: "stage-box" }, inner);
  const hint = el("p", { class: "note", hidden: true }, "There is no room here for the numbers of workers: zoom in to see them.");

  let image = images.rows[0]!;
  let box: Box = image.box;
  let scale = scaleOf(box, 300, 1);
  let width = 0;
  let clicks: number[] = []; // that are shown
  let current = -1; // place in `clicks` of the one that keys walk
  let selected: ObjectRow | null = null;
  let focused = 0; // number of the object that can be reached by keys

  const look = (): Look => ({
    on: wanted.clicks,
    off: wanted.off,
    colouring: wanted.colouring,
    shown: new Set(drawn().map((o) => o.object)),
  });
  const drawn = () => (wanted.objects ? image.objects.filter((o) => isShown(o, wanted)) : []);

  function layout(): void {
    if (width < 1) return;
    scale = scaleOf(box, width, window.matchMedia("print").matches ? 1 : wanted.zoom);
    for (const each of [inner, canvas]) {
      each.style.width = `${scale.width}px`;
      each.style.height = `${scale.height}px`;
    }
    overlay.setAttribute("width", String(scale.width));
    overlay.setAttribute("height", String(scale.height));
    const shown = wanted.picture && image.picture !== null;
    picture.hidden = !shown;
    inner.classList.toggle("over", shown);
    // A picture lies over the box; where that is no more than that of the clicks, over its own pixels.
    const [left, top, right, bottom] = box;
    picture.style.left = `${scale.x(left)}px`;
    picture.style.top = `${scale.y(top)}px`;
    picture.style.width = `${scale.x(right) - scale.x(left)}px`;
    picture.style.height = `${scale.y(bottom) - scale.y(top)}px`;
    clicks = visible(image, look());
    paint(canvas, image, images, scale, look());
    drawObjects();
    describe();
    hide();
  }

  function drawObjects(): void {
    const shown = drawn();
    const roomy = shown.length <= NUMBERS && scale.width * scale.height >= ROOM * shown.length;
    hint.hidden = roomy;
    if (!shown.some((o) => o.object === focused)) focused = shown[0]?.object ?? 0;
    ellipses.replaceChildren(
      svg("rect", {
        class: "frame",
        x: scale.x(box[0]),
        y: scale.y(box[1]),
        width: scale.x(box[2]) - scale.x(box[0]),
        height: scale.y(box[3]) - scale.y(box[1]),
      }),
      ...shown.map(drawObject),
    );
    numbers.replaceChildren(...(roomy ? drawNumbers(shown) : []));
    ring();
  }

  function drawObject(object: ObjectRow): SVGElement {
    const [x, y] = [scale.x(object.x), scale.y(object.y)];
    const [long, short, angle] = object.ellipse ?? [0, 0, 0];
    const shape = {
      rx: Math.max(long, 2 / scale.across),
      ry: Math.max(short, 2 / scale.down),
      transform: `translate(${x} ${y}) scale(${scale.across} ${scale.down}) rotate(${angle})`,
    };
    const of = selected?.object === object.object;
    const arm = Math.min(3, Math.max(1, Math.min(...extent(object)) / 3));
    return svg(
      "g",
      {
        class: `object${object.doubtful ? " doubtful" : ""}${of ? " chosen" : ""}`,
        role: "button",
        tabindex: object.object === focused ? 0 : -1,
        "aria-pressed": String(of),
        "aria-label": objectWords(object),
        "data-object": object.object,
      },
      svg("ellipse", { class: "halo", ...shape }),
      svg("ellipse", { class: "edge", ...shape }),
      svg("path", { class: "centre", d: `M${x - arm} ${y}h${2 * arm}M${x} ${y - arm}v${2 * arm}` }),
    );
  }

  /** The number of supporters beside each ellipse, unless it would cover a centre or another number. */
  function drawNumbers(shown: ObjectRow[]): SVGElement[] {
    const taken = shown.map(({ x, y }): Box => [scale.x(x) - 3, scale.y(y) - 3, scale.x(x) + 3, scale.y(y) + 3]);
    return shown.flatMap((object) => {
      const text = String(object.supporters ?? "");
      const place = text && free(object, text.length * LETTER + 2, taken);
      return place ? [svg("text", { x: place[0] + 1, y: place[3] - 2 }, text)] : [];
    });
  }

  function free(object: ObjectRow, wide: number, taken: Box[]): Box | null {
    const [x, y] = [scale.x(object.x), scale.y(object.y)];
    const away = Math.max(4, 0.75 * Math.min(...extent(object)));
    for (const [right, below] of CORNERS) {
      const left = right ? x + away : x - away - wide;
      const top = below ? y + away - 2 : y - away - HIGH + 2;
      const own: Box = [left, top, left + wide, top + HIGH];
      const inside = left >= 0 && top >= 0 && own[2] <= scale.width && own[3] <= scale.height;
      if (!inside || taken.some((b) => b[0] < own[2] && own[0] < b[2] && b[1] < own[3] && own[1] < b[3])) continue;
      taken.push(own);
      return own;
    }
    return null;
  }

  /** A ring that finds the chosen object, with lines to its clicks; and a ring around the click that is told about. */
  function ring(at = -1): void {
    const { clicks: all } = image;
    const place = (i: number) => [scale.x(all.x[i]!), scale.y(all.y[i]!)] as const;
    const marks: SVGElement[] = [];
    if (selected) {
      const [x, y] = [scale.x(selected.x), scale.y(selected.y)];
      const mine = clicks.filter((i) => all.object[i] === selected!.object);
      const lines = mine.map((i) => `M${x} ${y}L${place(i).join(" ")}`).join("");
      const size = Math.max(...extent(selected));
      if (size > LINES) marks.push(svg("path", { class: "own", d: lines }));
      const d = { cx: x, cy: y, r: size + 9 };
      marks.push(svg("circle", { class: "find halo", ...d }), svg("circle", { class: "find", ...d }));
    }
    if (at >= 0) marks.push(svg("circle", { class: "now", cx: place(at)[0], cy: place(at)[1], r: 7.5 }));
    rings.replaceChildren(...marks);
  }

  /** Half of the width and height of an ellipse, in pixels, at least. */
  const extent = ({ ellipse }: ObjectRow): [number, number] => [
    Math.max(2, (ellipse?.[0] ?? 0) * scale.across),
    Math.max(2, (ellipse?.[0] ?? 0) * scale.down),
  ];

  function describe(): void {
    ellipses.setAttribute("aria-label", `Objects of image ${plain(image.image)}`);
    current = Math.min(current, clicks.length - 1);
    const none = !clicks.length;
    canvas.setAttribute("aria-disabled", String(none));
    canvas.setAttribute("aria-valuemax", String(Math.max(1, clicks.length)));
    canvas.setAttribute("aria-valuenow", String(Math.max(1, current + 1)));
    const text =
      none ? "no click is shown" : current < 0 ? `${plural(clicks.length, "click")}; arrow keys walk them` : spoken();
    canvas.setAttribute("aria-valuetext", text);
  }

  function spoken(): string {
    const i = clicks[current]!;
    return `Click ${count(current + 1)} of ${count(clicks.length)}: ${plain(workerOf(i))} ${clickWords(image, i)}`;
  }

  const workerOf = (i: number) => images.workers[image.clicks.worker[i]!] ?? "";

  // ---------------------------------------------------------------------------------------------------- what is told

  function hide(): void {
    tip.hidden = true;
    ring();
  }

  function tell(x: number, y: number, ...lines: Child[][]): void {
    tip.replaceChildren(...lines.map((parts) => el("div", {}, ...parts)));
    tip.hidden = false;
    // Beside the place, and inside of what can be seen.
    const [left, right] = [node.scrollLeft, node.scrollLeft + node.clientWidth];
    const [top, bottom] = [node.scrollTop, node.scrollTop + node.clientHeight];
    const [wide, high] = [tip.offsetWidth, tip.offsetHeight];
    const beside = x + 14 + wide <= right ? x + 14 : x - 14 - wide;
    tip.style.left = `${Math.max(left + 2, Math.min(beside, right - wide - 2))}px`;
    tip.style.top = `${Math.max(top + 2, Math.min(y + 14, bottom - high - 2))}px`;
  }

  function tellClick(i: number): void {
    const reliability = images.reliability[image.clicks.worker[i]!] ?? null;
    const [x, y] = [image.clicks.x[i]!, image.clicks.y[i]!];
    tell(
      scale.x(x),
      scale.y(y),
      [el("strong", {}, name(workerOf(i)))],
      reliability !== null && [`reliability ${percent(reliability)}`] || [],
      [clickWords(image, i)],
      [`at ${significant(x)}, ${significant(y)}`],
    );
    ring(i);
  }

  function tellObject(object: ObjectRow): void {
    const { probability, supporters, clicks: expected, spread } = object;
    tell(
      scale.x(object.x),
      scale.y(object.y),
      [el("strong", {}, `Object ${object.object}`), object.doubtful && " doubtful"],
      [probability !== null && `probability ${percent(probability)}`],
      [supporters !== null && `${count(supporters)} of ${plural(image.jobs, "worker")}`],
      [expected !== null && `${decimal(expected, 1)} clicks expected`, spread !== null && `, spread ${significant(spread)}`],
    );
    ring();
  }

  // ---------------------------------------------------------------------------------------------------- by pointer

  function under(event: MouseEvent): { click: number; object: ObjectRow | null } {
    const at = inner.getBoundingClientRect();
    const [x, y] = [event.clientX - at.left, event.clientY - at.top];
    let [click, nearest] = [-1, NEAR];
    for (const i of clicks) {
      const far = Math.hypot(scale.x(image.clicks.x[i]!) - x, scale.y(image.clicks.y[i]!) - y);
      if (far < nearest) [click, nearest] = [i, far];
    }
    let [object, closest]: [ObjectRow | null, number] = [null, 1];
    for (const each of drawn()) {
      const far = distance(each, x, y);
      if (far < closest) [object, closest] = [each, far];
    }
    return { click, object };
  }

  /** How far pixels are from an object: 1 at its ellipse, or where it is very small, nine pixels from its centre. */
  function distance({ x, y, ellipse }: ObjectRow, px: number, py: number): number {
    const [right, down] = [px - scale.x(x), py - scale.y(y)];
    const near = Math.hypot(right, down) / REACH;
    if (!ellipse) return near;
    const turn = (ellipse[2] * Math.PI) / 180;
    const [dx, dy] = [right / scale.across, down / scale.down];
    const along = (dx * Math.cos(turn) + dy * Math.sin(turn)) / Math.max(ellipse[0], 1e-9);
    const beside = (dy * Math.cos(turn) - dx * Math.sin(turn)) / Math.max(ellipse[1], 1e-9);
    return Math.min(near, Math.hypot(along, beside));
  }

  inner.addEventListener("pointermove", (event) => {
    const { click, object } = under(event);
    if (click >= 0) tellClick(click);
    else if (object) tellObject(object);
    else hide();
    inner.classList.toggle("on-object", object !== null);
  });
  inner.addEventListener("pointerleave", hide);
  inner.addEventListener("click", (event) => {
    const { click, object } = under(event);
    if (object) chosen(object);
    if (click >= 0) tellClick(click);
    else if (object) tellObject(object);
  });

  // ---------------------------------------------------------------------------------------------------- by keys

  canvas.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return hide();
    const steps: Record<string, number> = {
      ArrowRight: 1,
      ArrowDown: 1,
      ArrowLeft: -1,
      ArrowUp: -1,
      PageDown: PAGE,
      PageUp: -PAGE,
      Home: -clicks.length,
      End: clicks.length,
    };
    const step = steps[event.key];
    if (step === undefined || !clicks.length || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    current = Math.min(clicks.length - 1, Math.max(0, current < 0 && step === 1 ? 0 : current + step));
    describe();
    bring(image.clicks.x[clicks[current]!]!, image.clicks.y[clicks[current]!]!);
    tellClick(clicks[current]!);
  });
  canvas.addEventListener("focus", () => {
    if (current >= 0 && canvas.matches(":focus-visible")) tellClick(clicks[current]!);
  });
  canvas.addEventListener("blur", hide);

  const objectOf = (target: EventTarget | null): ObjectRow | null => {
    const found = target instanceof Element ? target.closest("[data-object]") : null;
    return image.objects.find((o) => String(o.object) === found?.getAttribute("data-object")) ?? null;
  };
  ellipses.addEventListener("focusin", (event) => {
    const object = objectOf(event.target);
    if (!object) return;
    bring(object.x, object.y);
    tellObject(object);
  });
  ellipses.addEventListener("focusout", hide);
  ellipses.addEventListener("keydown", (event) => {
    const object = objectOf(event.target);
    if (!object || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") return hide();
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      chosen(object);
      focusOn(object);
      return;
    }
    const all = drawn();
    const at = all.indexOf(object);
    const to: Record<string, number> = {
      ArrowRight: at + 1,
      ArrowDown: at + 1,
      ArrowLeft: at - 1,
      ArrowUp: at - 1,
      Home: 0,
      End: all.length - 1,
    };
    const next = all[to[event.key] ?? -1];
    if (to[event.key] === undefined) return;
    event.preventDefault();
    if (next) focusOn(next);
  });

  function focusOn(object: ObjectRow): void {
    focused = object.object;
    for (const each of ellipses.querySelectorAll("[data-object]")) {
      each.setAttribute("tabindex", each.getAttribute("data-object") === String(focused) ? "0" : "-1");
    }
    ellipses.querySelector<SVGElement>(`[data-object="${focused}"]`)?.focus({ preventScroll: true });
  }

  /** Scrolls the box, where it is zoomed, until a place can be seen. */
  function bring(x: number, y: number): void {
    const [left, top] = [scale.x(x), scale.y(y)];
    if (left < node.scrollLeft + 20 || left > node.scrollLeft + node.clientWidth - 20) {
      node.scrollLeft = left - node.clientWidth / 2;
    }
    if (top < node.scrollTop + 20 || top > node.scrollTop + node.clientHeight - 20) {
      node.scrollTop = top - node.clientHeight / 2;
    }
  }

  // ---------------------------------------------------------------------------------------------------- what is shown

  function show(next: ImageRow): void {
    image = next;
    box = image.box;
    selected = null;
    current = -1;
    picture.removeAttribute("src");
    layout();
    if (image.picture === null) return;
    picture.src = image.picture;
    picture.decode().then(
      () => {
        if (image === next && fits(picture.naturalWidth, picture.naturalHeight, next.box)) {
          box = images.measured ? next.box : [0, 0, picture.naturalWidth, picture.naturalHeight];
          layout();
        }
      },
      () => undefined, // a picture that cannot be shown leaves the clicks as they are
    );
  }

  onWidth(node, (now) => {
    width = now;
    layout();
  });
  for (const query of ["print", "(prefers-color-scheme: dark)"]) {
    window.matchMedia(query).addEventListener("change", layout);
  }
  return {
    node: el("div", {}, node, hint),
    show,
    update: layout,
    choose: (object) => {
      selected = object;
      if (object) bring(object.x, object.y);
      drawObjects();
    },
  };
}

/** Whether clicks can be pixels of a picture of this size. */
function fits(width: number, height: number, [left, top, right, bottom]: Box): boolean {
  const inside = left >= 0 && top >= 0 && right <= width + 1 && bottom <= height + 1;
  return inside && (right > width / 8 || bottom > height / 8);
}

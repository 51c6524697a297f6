// One image: its picture, the clicks on a canvas, the objects as ellipses; walked by pointer and by keys.
import { bring, onLook, onPaper, stepOf, within } from "./canvas";
import { el, svg } from "./dom";
import { framed } from "./edges";
import { onWidth } from "./figure";
import { count, plain, plural } from "./format";
import type { Box, Images, ImageRow, ObjectRow } from "./generated";
import { type Colouring, type Look, paint, visible } from "./stage-marks";
import { drawFinder, drawFrame, drawNumbers, drawObject, drawTruth } from "./stage-objects";
import { distance, fits, scaleOf } from "./stage-scale";
import { clickLines, clickWords, objectLines } from "./stage-tip";
import { tip as makeTip } from "./tip";

const NEAR = 6; // pixels within which a click is meant
const PAGE = 10; // clicks that "page up" and "page down" move by
const FULL = "There is no room for the numbers of all objects. Zoom in to see more of them.";

export interface Wanted {
  clicks: boolean; // those on objects
  off: boolean; // those on none
  objects: boolean;
  picture: boolean;
  truth: boolean;
  colouring: Colouring;
  least: number; // probability of objects
  zoom: number;
}

export interface Stage {
  node: HTMLElement;
  show: (image: ImageRow) => void;
  update: () => void; // what is wanted has changed
  choose: (object: ObjectRow | null) => void;
}

export const isShown = ({ probability }: ObjectRow, { least }: Wanted): boolean => (probability ?? 0) >= least;

/** The stage, empty until an image is shown; `pick` is called with objects that are clicked. */
export function stage(images: Images, wanted: Wanted, pick: (object: ObjectRow) => void): Stage {
  const picture = el("img", { class: "picture", alt: "", draggable: "false" });
  const canvas = el("canvas", { role: "slider", tabindex: 0, "aria-valuemin": 1, "aria-label": "Clicks" });
  const ellipses = svg("g", { role: "group" });
  const numbers = svg("g", { class: "numbers", "aria-hidden": "true" });
  const rings = svg("g", { class: "rings", "aria-hidden": "true" });
  const truths = svg("g", { class: "truths", "aria-hidden": "true" }); // the caption counts them
  const overlay = svg("svg", { class: "objects" }, ellipses, truths, numbers, rings);
  const tip = makeTip(() => node);
  const inner = el("div", { class: "stage" }, picture, canvas, overlay, tip.node);
  const node = el("div", { class: "stage-box" }, inner);
  const hint = el("p", { class: "note", hidden: true }, FULL);

  let image = images.rows[0]!;
  let box: Box = image.box;
  let width = 0;
  let scale = scaleOf(box, 300, 1);
  let clicks: number[] = []; // that are shown
  let objects: ObjectRow[] = []; // likewise
  let current = -1; // place in `clicks` of the one that keys have reached
  let focused: ObjectRow | undefined; // the one that keys reach
  let chosen: ObjectRow | null = null;

  // ------------------------------------------------------------------------------------------------------ drawing

  function layout(): void {
    if (width < 1) return;
    scale = scaleOf(box, width, onPaper() ? 1 : wanted.zoom);
    for (const each of [inner, canvas]) {
      each.style.width = `${scale.width}px`;
      each.style.height = `${scale.height}px`;
    }
    overlay.setAttribute("width", String(scale.width));
    overlay.setAttribute("height", String(scale.height));
    layPicture();
    objects = wanted.objects ? image.objects.filter((o) => isShown(o, wanted)) : [];
    const look: Look = {
      on: wanted.clicks,
      off: wanted.off,
      colouring: wanted.colouring,
      objects: new Set(objects.map((o) => o.object)),
    };
    clicks = visible(image, look);
    current = Math.min(current, clicks.length - 1);
    paint(canvas, image, images, scale, look);
    drawObjects();
    describe();
    hide();
  }

  function layPicture(): void {
    const [left, top, right, bottom] = box;
    picture.hidden = !wanted.picture || image.picture === null;
    inner.classList.toggle("over", !picture.hidden);
    picture.style.left = `${scale.x(left)}px`;
    picture.style.top = `${scale.y(top)}px`;
    picture.style.width = `${scale.x(right) - scale.x(left)}px`;
    picture.style.height = `${scale.y(bottom) - scale.y(top)}px`;
  }

  function drawObjects(): void {
    ellipses.replaceChildren(drawFrame(box, scale), ...objects.map((o) => drawObject(o, scale, o === chosen)));
    truths.replaceChildren(...(wanted.truth && image.truth ? drawTruth(image.truth, objects, scale) : []));
    const drawn = drawNumbers(objects, chosen, scale);
    numbers.replaceChildren(...drawn);
    hint.hidden = drawn.length === objects.length;
    reach(focused && objects.includes(focused) ? focused : objects[0]);
    ring();
  }

  /** Marks the selected object, and the click with a tip. */
  function ring(click = -1): void {
    const at = click < 0 ? [] : [[scale.x(image.clicks.x[click]!), scale.y(image.clicks.y[click]!)] as const];
    rings.replaceChildren(
      ...(chosen && objects.includes(chosen) ? drawFinder(chosen, image, clicks, scale) : []),
      ...at.map(([cx, cy]) => svg("circle", { class: "now", cx, cy, r: 7.5 })),
    );
  }

  /** Describes the canvas to screen readers. */
  function describe(): void {
    ellipses.setAttribute("aria-label", `Objects of image ${plain(image.image)}`);
    canvas.setAttribute("aria-disabled", String(!clicks.length));
    canvas.setAttribute("aria-valuemax", String(Math.max(1, clicks.length)));
    canvas.setAttribute("aria-valuenow", String(Math.max(1, current + 1)));
    const all = clicks.length ? `${plural(clicks.length, "click")}; use the arrow keys` : "no click is shown";
    const one = () => `Click ${count(current + 1)}: ${clickWords(images, image, clicks[current]!)}`;
    canvas.setAttribute("aria-valuetext", current < 0 ? all : one());
  }

  function tellClick(i: number): void {
    tip.show(scale.x(image.clicks.x[i]!), scale.y(image.clicks.y[i]!), clickLines(images, image, i));
    ring(i);
  }

  function tellObject(object: ObjectRow): void {
    tip.show(scale.x(object.x), scale.y(object.y), objectLines(image, object));
    ring();
  }

  function hide(): void {
    tip.hide();
    ring();
  }

  // ---------------------------------------------------------------------------------------------------- by pointer

  function under(event: MouseEvent): { click: number; object: ObjectRow | null } {
    const corner = inner.getBoundingClientRect();
    const at: [number, number] = [event.clientX - corner.left, event.clientY - corner.top];
    let [click, nearest] = [-1, NEAR];
    for (const i of clicks) {
      const far = Math.hypot(scale.x(image.clicks.x[i]!) - at[0], scale.y(image.clicks.y[i]!) - at[1]);
      if (far < nearest) [click, nearest] = [i, far];
    }
    let [object, closest]: [ObjectRow | null, number] = [null, 1];
    for (const each of objects) {
      const far = distance(each, scale, at);
      if (far < closest) [object, closest] = [each, far];
    }
    return { click, object };
  }

  function tellUnder(event: MouseEvent): ObjectRow | null {
    const { click, object } = under(event);
    if (click >= 0) tellClick(click);
    else if (object) tellObject(object);
    else hide();
    inner.classList.toggle("on-object", object !== null);
    return object;
  }

  inner.addEventListener("pointermove", tellUnder);
  inner.addEventListener("pointerleave", hide);
  inner.addEventListener("click", (event) => {
    const object = under(event).object;
    if (object) pick(object);
    tellUnder(event);
  });

  // ------------------------------------------------------------------------------------------------------- by keys

  canvas.addEventListener("keydown", (event) => {
    const step = stepOf(event, PAGE);
    if (event.key === "Escape") hide();
    if (step === null || !clicks.length) return;
    event.preventDefault();
    current = within(current + step, clicks.length);
    describe();
    const i = clicks[current]!;
    bring(node, scale.x(image.clicks.x[i]!), scale.y(image.clicks.y[i]!));
    tellClick(i);
  });

  const objectAt = (target: EventTarget | null): ObjectRow | undefined => {
    const number = target instanceof Element ? target.closest("[data-object]")?.getAttribute("data-object") : null;
    return objects.find((o) => String(o.object) === number);
  };
  const drawnOf = (object: ObjectRow) => ellipses.querySelector<SVGElement>(`[data-object="${object.object}"]`);

  /** Makes an object the one that the tab key leads to. */
  function reach(object: ObjectRow | undefined): void {
    if (focused) drawnOf(focused)?.setAttribute("tabindex", "-1");
    focused = object;
    if (object) drawnOf(object)?.setAttribute("tabindex", "0");
  }

  function focusOn(object: ObjectRow): void {
    reach(object);
    drawnOf(object)?.focus({ preventScroll: true });
  }

  // Elements of SVG that listen to the focus take it themselves in some browsers: so the box around them listens.
  inner.addEventListener("focusin", (event) => {
    const object = objectAt(event.target);
    if (!object) return;
    bring(node, scale.x(object.x), scale.y(object.y));
    tellObject(object);
  });
  inner.addEventListener("focusout", hide);
  inner.addEventListener("keydown", (event) => {
    const object = objectAt(event.target);
    const step = stepOf(event, PAGE);
    if (!object) return;
    if (event.key === "Escape") hide();
    const press = event.key === "Enter" || event.key === " ";
    if (step === null && !press) return;
    event.preventDefault();
    if (press) pick(object);
    focusOn(objects[within(objects.indexOf(object) + (step ?? 0), objects.length)]!);
  });

  // -------------------------------------------------------------------------------------------------- what is shown

  function show(next: ImageRow): void {
    image = next;
    box = image.box;
    chosen = null;
    focused = undefined;
    current = -1;
    picture.removeAttribute("src");
    layout();
    if (image.picture === null) return;
    picture.src = image.picture;
    picture.decode().then(
      () => {
        // A picture lies over the box. Where that is only as large as the clicks need, it lies over its own pixels.
        const { naturalWidth: wide, naturalHeight: high } = picture;
        if (image !== next || images.measured || !fits(wide, high, next.box)) return;
        box = [0, 0, wide, high];
        layout();
      },
      () => undefined, // a picture that cannot be read leaves the clicks as they are
    );
  }

  onWidth(node, (now) => {
    width = now;
    layout();
  });
  onLook(layout);
  return {
    node: el("div", {}, framed(node), hint),
    show,
    update: layout,
    choose: (object) => {
      chosen = object;
      drawObjects();
      if (object) bring(node, scale.x(object.x), scale.y(object.y));
    },
  };
}

// One image at a time, with its clicks, and the list of its objects.
import { box, folded, select, zoom } from "../../controls";
import { asCount, asPercent, button, type Child, el, name, passage, sentence, svg, orDash } from "../../dom";
import { key, sample } from "../../figure";
import { count, percent, plural, short, significant } from "../../format";
import { type Column, column as of, filled, ledger } from "../../ledger";
import type { ImageRow, Images, ObjectRow } from "../../generated";
import { isShown, stage, type Wanted } from "../../stage";
import { type Colouring, sizeOf, STEPS } from "../../stage-marks";
import { objectWords, type TruthMark, truthPath } from "../../stage-objects";
import { table } from "../../table";

const MOST = 60; // clicks that are listed of an object

const column = of<ObjectRow>;
const COLUMNS: Column<ObjectRow>[] = [
  column({
    title: "Object",
    help: "The number beside it in the picture. Choose one to see its clicks",
    numeric: false,
    downFirst: false,
    names: true,
    value: (o) => o.object,
    cell: (o) => count(o.object),
  }),
  column({
    title: "Probability",
    help: "Probability that the object is real",
    downFirst: false,
    phone: "line",
    value: (o) => o.probability,
    cell: (o) =>
      el("span", {}, o.doubtful && el("span", { class: "flag" }, "doubtful"), " ", asPercent(o.probability)),
  }),
  column({
    title: "Workers",
    help: "Workers who clicked it, and their share of those who saw the image",
    value: (o) => o.supporters,
    phone: "line",
    cell: (o) =>
      el("span", {}, asCount(o.supporters), o.share !== null && el("small", {}, ` (${percent(o.share, 0)})`)),
  }),
  column({
    title: "Truth",
    help: "Whether it matches a true object",
    downFirst: false,
    phone: "line",
    value: (o) => (o.matched === null ? null : Number(o.matched)),
    cell: (o) => orDash(o.matched, (matched) => (matched ? "matched" : "no match")),
  }),
  column({
    title: "Clicks",
    help: "Expected number of clicks on it",
    value: (o) => o.clicks,
    cell: (o) => orDash(o.clicks, (v) => v.toFixed(1)),
  }),
  column({
    title: "Spread",
    help: "How far clicks scatter around it",
    value: (o) => o.spread,
    cell: (o) => orDash(o.spread, significant),
  }),
  column({
    title: "Place",
    help: "From the left and from the top; sorted from the left",
    downFirst: false,
    value: (o) => o.x,
    cell: (o) => `${significant(o.x)}, ${significant(o.y)}`,
  }),
];

/** The clicks that belong to an object, nearest first. */
function clicksOn(image: ImageRow, images: Images, { object, x, y }: ObjectRow): Child[][] {
  const { clicks } = image;
  const own = clicks.object.flatMap((o, i) => (o === object ? [i] : []));
  const away = (i: number) => Math.hypot(clicks.x[i]! - x, clicks.y[i]! - y);
  return own
    .sort((a, b) => away(a) - away(b))
    .map((i) => [
      name(images.workers[clicks.worker[i]!] ?? ""),
      asPercent(images.reliability[clicks.worker[i]!] ?? null),
      significant(away(i)),
      asPercent(clicks.probability[i] ?? null),
    ]);
}

function objectDetail(image: ImageRow, images: Images, object: ObjectRow): HTMLElement[] {
  const rows = clicksOn(image, images, object);
  if (!rows.length) return [sentence("No click that is shown here belongs to it.")];
  const number = (title: string) => ({ title, numeric: true });
  const heads = [{ title: "Worker" }, number("Reliability"), number("Distance"), number("Probability")];
  const made = table(`Clicks on object ${object.object}`, heads, rows.slice(0, MOST));
  const more = rows.length > MOST && el("p", { class: "note" }, `The ${MOST} nearest of ${count(rows.length)} clicks.`);
  return more ? [made, more] : [made];
}

function about({ jobs, total, off, objects }: ImageRow): string {
  if (!total) return `${plural(jobs, "worker")} looked at this image, and none clicked.`;
  const doubtful = objects.filter((o) => o.doubtful).length;
  const found = objects.length
    ? `${plural(objects.length, "object")}, ${doubtful ? `${count(doubtful)} of them doubtful` : "none doubtful"}`
    : "no object";
  const seen = `${plural(jobs, "worker")} looked at this image: ${plural(total, "click")}, ${found}`;
  return `${seen}; ${percent(off / total)} of the clicks are on no object.`;
}

/** How many true objects were found. */
function truthAbout({ objects, truth }: ImageRow): string {
  if (truth === null) return "";
  const found = truth.filter(([, , object]) => object !== null).length;
  const wrong = objects.filter((o) => o.matched === false).length;
  const seen = `Of ${plural(truth.length, "true object")}, ${count(found)} ${found === 1 ? "was" : "were"} found and ${count(truth.length - found)} missed`;
  return ` ${seen}; ${count(wrong)} of ${plural(objects.length, "object")} found ${wrong === 1 ? "matches" : "match"} no true object.`;
}

// -------------------------------------------------------------------------------------------------------- keys

const TRUTH: [TruthMark, string][] = [
  ["found", "true object, found"],
  ["missed", "true object, missed"],
  ["none", "object that matches no true one"],
];

const circle = (r: number, of: string, cx = 8, cy = 7) => svg("circle", { cx, cy, r, class: of });
const ellipse = (of: string) => sample(24, svg("ellipse", { cx: 12, cy: 7, rx: 10, ry: 5.5, class: of }));

function stepWords(low: number, high: number | undefined): string {
  if (low === 0) return `reliability below ${percent(high ?? 1, 0)}`;
  return high === undefined ? `${percent(low, 0)} and more` : `${100 * low}\u2013${percent(high, 0)}`;
}

function keyOf({ colouring, truth }: Wanted): HTMLElement {
  const steps = [0, ...STEPS].map((low, step): [SVGElement, Child] => [
    sample(16, circle(4 * sizeOf(step), `step-${step}`)),
    stepWords(low, STEPS[step]),
  ]);
  const spoke = svg("path", { d: "M3 11L20 4", class: "mark-ink hollow spoke" });
  const tied: [SVGElement, Child] = [
    sample(24, spoke, circle(3, "mark-cool full", 4, 11)),
    "click, tied to its object",
  ];
  const marks = TRUTH.map(([mark, words]): [SVGElement, Child] => [
    sample(16, svg("path", { d: truthPath(mark, 8, 7, 5), class: `truth-${mark}` })),
    words,
  ]);
  return key(
    ...(colouring === "reliability" ? steps : [tied]),
    [sample(16, circle(4, "mark-off hollow")), "on no object"],
    [ellipse("mark-object"), "object"],
    [ellipse("mark-object doubtful"), "doubtful object"],
    ...(truth ? marks : []),
  );
}

export function draw(images: Images): HTMLElement[] {
  const headline = el("p", { class: "headline" }, images.headline);
  const notes = images.notes.map((note) => el("p", { class: "note" }, note));
  const { rows } = images;

  const judged = rows.some((row) => row.truth !== null);
  const wanted: Wanted = {
    clicks: true,
    objects: true,
    off: true,
    picture: true,
    truth: judged,
    colouring: "reliability",
    least: 0,
    zoom: 1,
  };
  let at = 0;
  let opened: ObjectRow | null = null;
  const title = el("h3", { class: "on-paper" }); // on screens the list of images shows it
  const caption = el("figcaption", { "aria-live": "polite" });
  const pick = el("select", {}, ...rows.map((row, i) => el("option", { value: i }, optionWords(row))));
  pick.addEventListener("change", () => go(Number(pick.value)));
  const keyBox = el("div", {}, keyOf(wanted));
  const list = ledger<ObjectRow>({
    what: "object",
    rows: [],
    columns: filled(
      COLUMNS,
      rows.flatMap((row) => row.objects),
      new Set(["Object", "Probability"]),
    ),
    keep: (object) => isShown(object, wanted),
    detail: (object) => ({ label: objectWords(object), content: objectDetail(rows[at]!, images, object) }),
    opened: (object) => {
      opened = object;
      view.choose(object);
    },
  });
  const view = stage(images, wanted, (object) => list.open(opened === object ? null : object));

  function go(to: number): void {
    at = (to + rows.length) % rows.length;
    const row = rows[at]!;
    pick.value = String(at);
    title.replaceChildren("Image ", name(row.image));
    caption.replaceChildren(about(row) + truthAbout(row), ...(row.text === null ? [] : [passage(row.text)]));
    opened = null;
    view.show(row);
    list.fill(row.objects);
    pictureBox.querySelector("input")!.disabled = row.picture === null;
  }

  const change = (part: Partial<Wanted>) => {
    Object.assign(wanted, part);
    view.update();
    keyBox.replaceChildren(keyOf(wanted));
  };
  const least = el("input", { type: "range", min: 0, max: 100, step: 1, value: 0 });
  const level = el("output", {}, percent(0, 0));
  least.addEventListener("input", () => {
    change({ least: Number(least.value) / 100 });
    level.textContent = percent(wanted.least, 0);
    list.fill();
  });
  const pictureBox = box("Picture", true, (picture) => change({ picture }));
  const choice = el(
    "div",
    { class: "controls choice" },
    el("label", { class: "wide" }, "Image ", pick),
    rows.length > 1 && button("step", "Previous", () => go(at - 1)),
    rows.length > 1 && button("step", "Next", () => go(at + 1)),
  );
  const controls = folded(
    "What is shown",
    box("Clicks on objects", true, (clicks) => change({ clicks })),
    box("Clicks on no object", true, (off) => change({ off })),
    box("Objects", true, (objects) => change({ objects })),
    rows.some((row) => row.picture !== null) && pictureBox,
    judged && box("Truth", true, (truth) => change({ truth })),
    select<Colouring>("Colour clicks by", ["reliability", "object"], (colouring) => change({ colouring })),
    zoom((zoom) => change({ zoom })),
    el("label", {}, "Objects with probability at least ", least, level),
  );
  const shown = el("div", { class: "shown" }, view.node, keyBox, controls);
  const beside = el("div", { class: "beside" }, shown, el("div", { class: "list" }, ...list.parts));
  const figure = el("figure", { class: "images" }, title, caption, beside);
  go(0);
  return [headline, choice, figure, ...notes];
}

function optionWords({ image, objects }: ImageRow): string {
  const doubtful = objects.filter((o) => o.doubtful).length;
  return `${short(image, 60)}: ${plural(objects.length, "object")}${doubtful ? `, ${count(doubtful)} doubtful` : ""}`;
}

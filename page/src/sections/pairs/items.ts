// The section on items: their picture, the key of clusters by which one can be picked, and the list.
import { box, folded, zoom } from "../../controls";
import { asCount, asPercent, button, type Child, el, name, passage } from "../../dom";
import { key } from "../../figure";
import { count, plain, plural } from "../../format";
import { type Column, column as of, filled, ledger } from "../../ledger";
import { answersWords, cloud, isDoubtful, isWanted, sureWords, type Wanted } from "../../pairs-cloud";
import type { ItemMap } from "../../generated";
import { clusterSample, COLOURED } from "../../pairs-style";
import { ringSample } from "../../series";

const PRINTED = 50; // items of the list on paper

/** The small image of an item: tables may have it already, and the data holds the others. */
function picturesOf({ dots, pictures }: ItemMap): (dot: number) => string | null {
  const seen = document.querySelectorAll<HTMLImageElement>("img[data-item]");
  const known = new Map([...seen].map((image) => [image.dataset.item, image.src]));
  return (dot) => pictures[String(dots.number[dot])] ?? known.get(String(dots.number[dot])) ?? null;
}

function columnsOf(map: ItemMap, rows: number[]): Column<number>[] {
  const { dots } = map;
  const column = of<number>;
  const all: Column<number>[] = [
    column({
      title: "Item",
      help: "Choose one to see it in the picture",
      numeric: false,
      downFirst: false,
      names: true,
      value: (i) => dots.item[i]!,
      cell: (i) => name(dots.item[i]!),
    }),
    column({
      title: "Cluster",
      help: "The most probable cluster",
      downFirst: false,
      phone: "line",
      value: (i) => dots.cluster[i]!,
      cell: (i) => el("span", { class: "cluster" }, clusterSample(dots.cluster[i]!), count(dots.cluster[i]!)),
    }),
    column({
      title: "Probability",
      help: "Probability that it is in this cluster",
      downFirst: false,
      phone: "line",
      value: (i) => dots.probability[i] ?? null,
      cell: (i) => {
        const flag = isDoubtful(map, i) && el("span", { class: "flag" }, "doubtful");
        return el("span", {}, flag, " ", asPercent(dots.probability[i] ?? null));
      },
    }),
    column({
      title: "Second",
      help: "The second most probable cluster",
      downFirst: false,
      value: (i) => dots.second[i] ?? null,
      cell: (i) => asCount(dots.second[i] ?? null),
    }),
    column({
      title: "Answers",
      help: "Answers about it",
      value: (i) => dots.answers[i]!,
      cell: (i) => count(dots.answers[i]!),
    }),
  ];
  return filled(all, rows, new Set(["Item", "Cluster", "Probability"]));
}

function detail({ dots }: ItemMap, dot: number, picture: string | null): HTMLElement[] {
  const lines = [...sureWords(dots, dot), answersWords(dots, dot)].filter(Boolean);
  const facts = el("ul", { class: "facts-line" }, ...lines.map((text) => el("li", {}, text)));
  const text = dots.text[dot] ? [passage(dots.text[dot]!)] : [];
  return [...(picture === null ? [] : [el("img", { class: "thumb", src: picture, alt: "" })]), ...text, facts];
}

/** The clusters with their marks: the first can be picked, one at a time. */
function legend({ clusters }: ItemMap, pick: (cluster: number) => void): { node: HTMLElement; mark(c: number): void } {
  const buttons = clusters.slice(0, COLOURED).map((items, k) => {
    const made = button("swatch", "", () => pick(k + 1));
    made.append(clusterSample(k + 1), count(k + 1));
    made.setAttribute("aria-label", `Cluster ${count(k + 1)}, ${plural(items, "item")}`);
    made.title = plural(items, "item");
    return made;
  });
  const rest = clusters.length - buttons.length;
  const others: [SVGElement, Child] = [clusterSample(COLOURED + 1), `${count(rest)} further clusters`];
  const marks = key(...(rest ? [others] : []), [ringSample(), "doubtful"]);
  const list = el("ul", { class: "swatches", "aria-label": "Show one cluster" });
  list.append(...buttons.map((made) => el("li", {}, made)));
  return {
    node: el("div", { class: "legend" }, list, marks),
    mark: (cluster) => buttons.forEach((made, k) => made.setAttribute("aria-pressed", String(k + 1 === cluster))),
  };
}

export function draw(map: ItemMap): HTMLElement[] {
  const headline = el("p", { class: "headline" }, map.headline);
  const notes = map.notes.map((note) => el("p", { class: "note" }, note));
  const rows = map.dots.x.map((_, i) => i);

  const wanted: Wanted = { cluster: 0, doubtful: false, zoom: 1 };
  let opened: number | null = null;
  const pictureOf = picturesOf(map);
  const list = ledger<number>({
    what: "item",
    rows,
    total: map.total,
    columns: columnsOf(map, rows),
    search: { hint: "Name", texts: (i) => [map.dots.item[i]!] },
    keep: (i) => isWanted(map, i, wanted),
    detail: (i) => ({ label: `Item ${plain(map.dots.item[i]!)}`, content: detail(map, i, pictureOf(i)) }),
    opened: (i) => {
      opened = i;
      view.choose(i);
    },
    printed: PRINTED,
  });
  const view = cloud(map, wanted, pictureOf, (i) => list.open(opened === i ? null : i));

  function change(part: Partial<Wanted>): void {
    Object.assign(wanted, part);
    marks.mark(wanted.cluster);
    choice.value = String(wanted.cluster);
    if (opened !== null && !isWanted(map, opened, wanted)) list.open(null);
    view.update();
    list.fill();
  }
  const marks = legend(map, (cluster) => change({ cluster: wanted.cluster === cluster ? 0 : cluster }));
  const options = map.clusters.map((items, k) => el("option", { value: k + 1 }, `${count(k + 1)}: ${plural(items, "item")}`));
  const choice = el("select", {}, el("option", { value: 0 }, "all"), ...options);
  choice.addEventListener("change", () => change({ cluster: Number(choice.value) }));
  marks.mark(0);

  const controls = folded(
    "What is shown",
    el("label", {}, "Cluster ", choice),
    box("Doubtful items only", false, (doubtful) => change({ doubtful })),
    zoom((zoom) => change({ zoom })),
  );
  const shown = el("div", { class: "shown" }, view.node, marks.node, controls);
  const beside = el("div", { class: "beside" }, shown, el("div", { class: "list" }, ...list.parts));
  return [headline, el("figure", { class: "images" }, beside), ...notes];
}

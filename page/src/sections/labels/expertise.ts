// How often each worker gives each class when it is true, by method.
import type { Expertise, Shared } from "../../generated";
import { asPercent, type Child, chip, el, name } from "../../dom";
import {
  againstTruth,
  bothClasses,
  drawAgainstTruth,
  drawBothClasses,
  drawStrips,
  estimates,
  TRUTH,
} from "../../expertise-charts";
import { type Person, people } from "../../experts";
import { type Chart, figure, key } from "../../figure";
import { count } from "../../format";
import { ringSample, styleOf, symbolSample, tickSample } from "../../series";
import { number } from "../../table";

type Picture = Pick<Chart, "label" | "draw" | "key"> & { note?: string };

/** The key of points: the truth is a ring, each method has its symbol. */
function symbols(methods: string[]): HTMLElement {
  const place = (method: string) => estimates(methods).indexOf(method);
  const mark = (method: string) => (method === TRUTH ? ringSample() : symbolSample(styleOf(place(method))));
  return key(...methods.map((method): [SVGElement, Child] => [mark(method), name(method)]));
}

/** The key of ticks. With several methods, it also says which row of a class is whose. */
function ticks(methods: string[]): HTMLElement {
  const words = (method: string, i: number) =>
    el("span", {}, name(method), methods.length > 1 && ` (row ${i + 1} of each class)`);
  return key(...methods.map((method, i): [SVGElement, Child] => [tickSample(styleOf(i)), words(method, i)]));
}

/** The chart that suits the classes, and what is known. */
function picture(everyone: Person[], methods: string[], { labels }: Expertise, classes: string[]): Picture {
  const both = classes.length === 2 ? bothClasses(everyone, methods, classes) : [];
  if (both.length) {
    return {
      label: "How often each worker gives either class when it is true",
      key: symbols(methods),
      draw: (width) => drawBothClasses(both, methods, classes, width),
    };
  }
  const compared = classes.length > 2 ? againstTruth(everyone, methods, classes) : [];
  if (compared.length) {
    return {
      label: "How often workers give a class when it is true, estimated against the truth",
      key: symbols(estimates(methods)),
      draw: (width) => drawAgainstTruth(compared, methods, width),
    };
  }
  const cut = labels.length < classes.length;
  return {
    note: cut ? `The ${labels.length} most frequent of ${count(classes.length)} classes; the table has all.` : undefined,
    label: "How often workers give each class when it is true, one tick per worker",
    key: ticks(methods),
    draw: (width) => drawStrips(everyone, methods, labels, classes, width),
  };
}

export function draw(data: Expertise, { classes }: Shared): HTMLElement[] {
  const { headline, methods, rows } = data;
  const everyone = people(rows);
  const listed = everyone.flatMap((person) =>
    classes.flatMap((label, k): Child[][] => {
      const shares = methods.map((method) => person.share(method, k));
      return shares.every((s) => s === null) ? [] : [[name(person.worker), chip(label), ...shares.map(asPercent)]];
    }),
  );
  const { note, ...chart } = picture(everyone, methods, data, classes);
  const heads = [{ title: "Worker" }, { title: "Class" }, ...methods.map(number)];
  const made = figure({ ...chart, headline, heads, rows: listed });
  return note ? [made, el("p", { class: "note" }, note)] : [made];
}

// Pairs of classes that are mixed up.
import { drawMixups } from "../../charts";
import { chip } from "../../dom";
import { figure } from "../../figure";
import { count, percent } from "../../format";
import type { MixUps, Shared } from "../../generated";
import { number } from "../../table";

export function draw({ headline, rows }: MixUps, { classes }: Shared): HTMLElement[] {
  return [
    figure({
      label: "Pairs of classes that get mixed up",
      headline,
      draw: (width) => drawMixups(rows, classes, width),
      heads: [
        { title: "True class" },
        { title: "Label given" },
        number("Expected number of answers"),
        number("Share of the answers to this class"),
      ],
      rows: rows.map((r) => [
        chip(classes[r.truth] ?? ""),
        chip(classes[r.given] ?? ""),
        count(r.answers),
        percent(r.share),
      ]),
    }),
  ];
}

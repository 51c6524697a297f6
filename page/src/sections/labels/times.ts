// Time per answer against skill.
import { drawTimes } from "../../curves";
import { name } from "../../dom";
import { figure, key } from "../../figure";
import { percent, seconds } from "../../format";
import type { Times } from "../../generated";
import { number } from "../../table";

export function draw({ headline, rows }: Times): HTMLElement[] {
  return [
    figure({
      label: "Median time per answer against skill, one mark per worker",
      headline,
      key: key(["dot", "worker"], ["cross", "flagged worker"]),
      draw: (width) => drawTimes(rows, width),
      heads: [{ title: "Worker" }, number("Median seconds"), number("Skill"), { title: "Flagged" }],
      rows: rows.map(([worker, time, skill, flagged]) => [
        name(worker),
        seconds(time),
        percent(skill),
        flagged ? "flagged" : "no",
      ]),
    }),
  ];
}

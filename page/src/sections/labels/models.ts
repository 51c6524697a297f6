// Other models on the same answers.
import { asCount, asDecimal, asPercent, el } from "../../dom";
import { seconds } from "../../format";
import type { Models } from "../../generated";
import { number, table } from "../../table";

export function draw({ headline, rows: models }: Models): HTMLElement[] {
  const scored = models.some((r) => r.accuracy !== null);
  const heads = [
    { title: "Model" },
    number("Labels that differ"),
    ...(scored ? [number("Accuracy on gold"), number("Log loss on gold")] : []),
    number("Iterations"),
    { title: "Converged" },
    number("Time"),
  ];
  const rows = models.map((r, i) => [
    el("span", {}, r.model, i === 0 && el("span", { class: "flag quiet" }, "\u25cf this report")),
    asCount(r.differs),
    ...(scored ? [asPercent(r.accuracy), asDecimal(r.log_loss)] : []),
    asCount(r.iterations),
    r.converged ? "yes" : "no",
    seconds(r.seconds),
  ]);
  return [el("p", { class: "headline" }, headline), table("Models compared", heads, rows)];
}

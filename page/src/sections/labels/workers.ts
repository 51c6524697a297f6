// The section on workers.
import type { Shared, WorkerRow, Workers } from "../../generated";
import { el } from "../../dom";
import { plain } from "../../format";
import { ledger } from "../../ledger";
import { columnsOf } from "../../worker-columns";
import { workerDetail } from "../../worker-detail";

const isFlagged = ({ flags }: WorkerRow): boolean => flags.length > 0;

export function draw({ headline, rows, total, guessing }: Workers, { classes }: Shared): HTMLElement[] {
  const made = ledger<WorkerRow>({
    what: "worker",
    rows,
    total,
    columns: columnsOf({ rows, guessing }),
    search: { hint: "Name or flag", texts: (row) => [row.worker, ...row.flags] },
    only: rows.some(isFlagged) ? { label: "Flagged only", className: "flagged-only", keep: isFlagged } : undefined,
    detail: (row) => ({ label: `Worker ${plain(row.worker)}`, content: workerDetail(row, classes) }),
  });
  return [el("p", { class: "headline" }, headline), ...made.parts];
}

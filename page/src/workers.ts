// The section on workers.
import type { Page, WorkerRow } from "./data";
import { el, sentence } from "./dom";
import { plain } from "./format";
import { ledger } from "./ledger";
import { columnsOf } from "./worker-columns";
import { workerDetail } from "./worker-detail";

const isFlagged = ({ flags }: WorkerRow): boolean => flags.length > 0;

export function workersSection({ workers, classes }: Page): HTMLElement[] {
  const { rows, total } = workers;
  const says = el("p", { class: "says" }, workers.says);
  if (!rows.length) return [says, sentence("There are no workers to show.")];
  const made = ledger<WorkerRow>({
    what: "worker",
    rows,
    total,
    columns: columnsOf(rows, classes.length),
    search: { hint: "Name or flag", texts: (row) => [row.worker, ...row.flags] },
    only: rows.some(isFlagged) ? { label: "Flagged only", className: "flagged-only", keep: isFlagged } : undefined,
    detail: (row) => ({ label: `Worker ${plain(row.worker)}`, content: workerDetail(row, classes) }),
  });
  return [says, ...made.parts];
}

// The page's data, as `crowdwise.report.labels` and the modules of its sections write it. Classes are told by their number in `Page.classes`.
import type { PairsPage } from "./pairs-data";
import type { PointsPage } from "./points-data";

/** A matrix in sparse form: true class, label told, and expected answers (of groups, and compared: a probability). */
export type Cells = [truth: number, said: number, value: number][];

export interface ClassShare {
  label: number;
  votes: number;
  truth: number;
}

export interface Surprise {
  task: string;
  said: number;
  label: number;
  probability: number;
}

export interface WorkerRow {
  worker: string;
  rank: number | null;
  answers: number;
  skill: number | null;
  low: number | null;
  high: number | null;
  spam_score: number | null;
  trace: number | null;
  agreement: number | null;
  check_score: number | null;
  checks: number;
  seconds: number | null;
  overuses: number | null;
  overuse: number | null;
  flags: string[];
  reasons: string[];
  status: string;
  confusion: Cells;
  surprises: Surprise[];
}

export interface Vote {
  worker: string;
  label: number;
  skill: number | null;
}

export interface TaskRow {
  task: string;
  label: number | null;
  probability: number | null;
  status: string;
  tie: boolean;
  answers: number;
  entropy: number | null;
  vote_entropy: number | null;
  disagreement: number | null;
  difficulty: number | null;
  gain: number | null;
  posterior: [label: number, probability: number][];
  votes: Vote[];
  more_votes: number;
}

export interface MixUp {
  truth: number;
  said: number;
  answers: number;
  share: number;
}

export interface CurvePoint {
  plan: string;
  answers: number;
  accuracy: number;
  low: number;
  high: number;
}

export type TimeRow = [worker: string, seconds: number, skill: number, flagged: boolean];

export interface Bin {
  low: number;
  high: number;
  count: number;
}

export interface Histogram {
  title: string;
  unit: string;
  says: string;
  whole: boolean;
  bins: Bin[];
}

export interface Matrix {
  title: string;
  worker: string | null;
  cells: Cells;
}

export interface ModelRow {
  model: string;
  differs: number;
  accuracy: number | null;
  log_loss: number | null;
  iterations: number;
  converged: boolean;
  seconds: number;
}

export interface RocCurve {
  method: string;
  auc: number;
  points: [falsePositives: number, truePositives: number][];
}

/** The method that is no estimate. */
export const TRUTH = "truth";

export interface Expert {
  worker: string;
  label: number;
  method: string;
  share: number;
}

export interface Group {
  share: number;
  workers: number;
  similarity: number;
  entropy: number;
  cells: Cells;
}

export interface Compared {
  title: string;
  worker: string | null;
  divergence: number;
  truth: Cells;
  estimated: Cells;
}

export interface Groups {
  says: string;
  note: string;
  groups: Group[];
  compared_says: string;
  compared: Compared[];
}

export interface Cost {
  method: string;
  workers: number;
  seconds: number;
  megabytes: number;
}

/** A sentence and what it is about. */
export interface Told<Row> {
  says: string;
  rows: Row[];
}

export interface Page {
  kind: "labels";
  classes: string[];
  prevalence_says: string;
  prevalence: ClassShare[];
  workers: Told<WorkerRow> & { total: number };
  tasks: Told<TaskRow> & { total: number; to_review: number };
  mixups: Told<MixUp>;
  curve: { says: string; points: CurvePoint[] };
  times: Told<TimeRow> | null;
  pictures: { histograms: Histogram[]; says: string; matrices: Matrix[] };
  models: Told<ModelRow> | null;
  roc: { says: string; positive: number | null; curves: RocCurve[] } | null;
  expertise: (Told<Expert> & { methods: string[] }) | null;
  groups: Groups | null;
  scaling: (Told<Cost> & { methods: string[] }) | null;
}

/** The data of this page. */
export function readData(): Page | PointsPage | PairsPage {
  return JSON.parse(document.getElementById("data")?.textContent ?? "null") as Page | PointsPage | PairsPage;
}

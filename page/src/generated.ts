// Written by page/generate.py from the dataclasses of crowdwise.report. Do not edit: run `make page`.
import { draw as labels_prevalence } from "./sections/labels/prevalence";
import { draw as labels_workers } from "./sections/labels/workers";
import { draw as labels_tasks } from "./sections/labels/tasks";
import { draw as labels_meaning } from "./sections/labels/meaning";
import { draw as labels_mixups } from "./sections/labels/mixups";
import { draw as labels_curve } from "./sections/labels/curve";
import { draw as labels_times } from "./sections/labels/times";
import { draw as labels_pictures } from "./sections/labels/pictures";
import { draw as labels_expertise } from "./sections/labels/expertise";
import { draw as labels_groups } from "./sections/labels/groups";
import { draw as labels_scaling } from "./sections/labels/scaling";
import { draw as labels_roc } from "./sections/labels/roc";
import { draw as labels_models } from "./sections/labels/models";
import { draw as pairs_items } from "./sections/pairs/items";
import { draw as pairs_workers } from "./sections/pairs/workers";
import { draw as pairs_search } from "./sections/pairs/search";
import { draw as points_images } from "./sections/points/images";
import { draw as points_workers } from "./sections/points/workers";
import { draw as points_search } from "./sections/points/search";
import { draw as points_methods } from "./sections/points/methods";

export interface Shared {
  kind: string;
  classes: string[];
}

export interface Prevalence {
  headline: string;
  rows: ClassShare[];
}

export interface ClassShare {
  label: number;
  votes: number;
  truth: number;
}

export interface Workers {
  headline: string;
  total: number;
  guessing: number | null;
  rows: WorkerRow[];
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
  overused: number | null;
  overuse: number | null;
  flags: string[];
  reasons: string[];
  status: string;
  confusion: MatrixCell[];
  surprises: Surprise[];
}

export type MatrixCell = [truth: number, given: number, value: number];

export interface Surprise {
  task: string;
  given: number;
  label: number;
  probability: number;
}

export interface Tasks {
  headline: string;
  total: number;
  to_review: number;
  notes: string[];
  rows: TaskRow[];
}

export interface TaskRow {
  task: string;
  label: number | null;
  probability: number | null;
  status: "ok" | "unvoted" | "no answers" | "known";
  tie: boolean;
  answers: number;
  entropy: number | null;
  vote_entropy: number | null;
  disagreement: number | null;
  difficulty: number | null;
  gain: number | null;
  posterior: Chance[];
  votes: Vote[];
  more_votes: number;
  text: string | null;
  picture: string | null;
}

export type Chance = [label: number, probability: number];

export interface Vote {
  worker: string;
  label: number;
  skill: number | null;
}

export interface Meaning {
  headline: string;
  facts: Fact[];
  bins_headline: string;
  bins: ReliabilityBin[];
}

export interface Fact {
  name: string;
  text: string;
}

export type ReliabilityBin = [probability: number, right: number, low: number, high: number, tasks: number];

export interface MixUps {
  headline: string;
  rows: MixUp[];
}

export interface MixUp {
  truth: number;
  given: number;
  answers: number;
  share: number;
}

export interface Curve {
  headline: string;
  points: CurvePoint[];
}

export interface CurvePoint {
  plan: string;
  answers: number;
  accuracy: number;
  low: number;
  high: number;
}

export interface Times {
  headline: string;
  rows: WorkerTime[];
}

export type WorkerTime = [worker: string, seconds: number, skill: number, flagged: boolean];

export interface Pictures {
  histograms: Histogram[];
  headline: string;
  matrices: Matrix[];
}

export interface Histogram {
  title: string;
  unit: string;
  counted: string;
  headline: string;
  whole: boolean;
  bins: Bin[];
}

export interface Bin {
  low: number;
  high: number;
  count: number;
}

export interface Matrix {
  title: string;
  worker: string | null;
  cells: MatrixCell[];
}

export interface Expertise {
  headline: string;
  methods: string[];
  labels: number[];
  rows: Expert[];
}

export interface Expert {
  worker: string;
  label: number;
  method: string;
  share: number;
}

export interface Groups {
  headline: string;
  note: string;
  groups: Group[];
  compared_headline: string;
  compared: Compared[];
}

export interface Group {
  share: number;
  workers: number;
  similarity: number;
  entropy: number;
  cells: MatrixCell[];
}

export interface Compared {
  title: string;
  worker: string | null;
  divergence: number;
  truth: MatrixCell[];
  estimated: MatrixCell[];
}

export interface Scaling {
  headline: string;
  methods: string[];
  rows: Cost[];
}

export interface Cost {
  method: string;
  workers: number;
  seconds: number;
  megabytes: number;
}

export interface Roc {
  headline: string;
  positive: number | null;
  curves: RocCurve[];
}

export interface RocCurve {
  method: string;
  auc: number;
  points: RocPoint[];
}

export type RocPoint = [false_positive: number, true_positive: number];

export interface Models {
  headline: string;
  rows: ModelRow[];
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

export interface ItemMap {
  headline: string;
  notes: string[];
  total: number;
  doubtful: number;
  box: Box;
  clusters: number[];
  dots: Dots;
  pictures: Record<string, string>;
}

export type Box = [left: number, top: number, right: number, bottom: number];

export interface Dots {
  item: string[];
  x: number[];
  y: number[];
  cluster: number[];
  probability: (number | null)[];
  second: (number | null)[];
  second_probability: (number | null)[];
  answers: number[];
  number: number[];
  text: string[];
}

export interface PairsWorkers {
  headline: string;
  total: number;
  rows: PairsWorker[];
}

export interface PairsWorker {
  worker: string;
  rank: number;
  answers: number;
  counted: number | null;
  weight: number | null;
  skill: number | null;
  low: number | null;
  high: number | null;
  sensitivity: number | null;
  sensitivity_low: number | null;
  sensitivity_high: number | null;
  specificity: number | null;
  specificity_low: number | null;
  specificity_high: number | null;
}

export interface Training {
  search: Search | null;
  shares: Shares | null;
}

export interface Search {
  headline: string;
  criterion: string;
  best: number | null;
  rows: Iteration[];
}

export type Iteration = [iteration: number, objective: number | null, found: number | null];

export interface Shares {
  headline: string;
  epochs: number[];
  components: number[];
  rows: number[][];
  total: number;
}

export interface Images {
  headline: string;
  notes: string[];
  total: number;
  measured: boolean;
  workers: string[];
  reliability: (number | null)[];
  rows: ImageRow[];
}

export interface ImageRow {
  image: string;
  jobs: number;
  box: Box;
  total: number;
  off: number;
  clicks: Clicks;
  objects: ObjectRow[];
  picture: string | null;
  text: string | null;
  truth: TrueObject[] | null;
}

export interface Clicks {
  worker: number[];
  x: number[];
  y: number[];
  object: number[];
  probability: (number | null)[];
  outlier: (number | null)[];
}

export interface ObjectRow {
  object: number;
  x: number;
  y: number;
  probability: number | null;
  doubtful: boolean;
  clicks: number | null;
  supporters: number | null;
  share: number | null;
  spread: number | null;
  ellipse: Ellipse | null;
  matched: boolean | null;
}

export type Ellipse = [long: number, short: number, angle: number];

export type TrueObject = [x: number, y: number, object: number | null];

export interface PointsWorkers {
  headline: string;
  total: number;
  rows: PointsWorker[];
}

export interface PointsWorker {
  worker: string;
  rank: number | null;
  images: number;
  clicks: number;
  reliability: number | null;
  low: number | null;
  high: number | null;
  hit_rate: number | null;
  hit_low: number | null;
  hit_high: number | null;
  spread: number | null;
}

export interface Methods {
  headline: string;
  rows: Method[];
}

export interface Method {
  method: string;
  success: number | null;
  mae: number | null;
  runs: number;
  median: number | null;
  curve: ErrorPoint[];
}

export type ErrorPoint = [error: number, share: number];

/** The data of every section that a script draws. */
export interface Sections {
  "labels/prevalence": Prevalence;
  "labels/workers": Workers;
  "labels/tasks": Tasks;
  "labels/meaning": Meaning;
  "labels/mixups": MixUps;
  "labels/curve": Curve;
  "labels/times": Times;
  "labels/pictures": Pictures;
  "labels/expertise": Expertise;
  "labels/groups": Groups;
  "labels/scaling": Scaling;
  "labels/roc": Roc;
  "labels/models": Models;
  "pairs/items": ItemMap;
  "pairs/workers": PairsWorkers;
  "pairs/search": Training;
  "points/images": Images;
  "points/workers": PointsWorkers;
  "points/search": Search;
  "points/methods": Methods;
}

/** The function that draws each of them. */
type Draw<Data> = (data: Data, shared: Shared) => HTMLElement[];
export const SECTIONS: { [Path in keyof Sections]: Draw<Sections[Path]> } = {
  "labels/prevalence": labels_prevalence,
  "labels/workers": labels_workers,
  "labels/tasks": labels_tasks,
  "labels/meaning": labels_meaning,
  "labels/mixups": labels_mixups,
  "labels/curve": labels_curve,
  "labels/times": labels_times,
  "labels/pictures": labels_pictures,
  "labels/expertise": labels_expertise,
  "labels/groups": labels_groups,
  "labels/scaling": labels_scaling,
  "labels/roc": labels_roc,
  "labels/models": labels_models,
  "pairs/items": pairs_items,
  "pairs/workers": pairs_workers,
  "pairs/search": pairs_search,
  "points/images": points_images,
  "points/workers": points_workers,
  "points/search": points_search,
  "points/methods": points_methods,
};

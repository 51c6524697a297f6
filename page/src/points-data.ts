// The data of a page of points, as `crowdwise.report.points` writes it.

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
  ellipse: [long: number, short: number, angle: number] | null;
}

export interface Clicks {
  worker: number[];
  x: number[];
  y: number[];
  object: number[];
  probability: (number | null)[];
  outlier: (number | null)[];
}

export type Box = [left: number, top: number, right: number, bottom: number];

export interface ImageRow {
  image: string;
  jobs: number;
  box: Box;
  total: number;
  off: number;
  clicks: Clicks;
  objects: ObjectRow[];
  picture: string | null;
}

export interface Images {
  says: string;
  notes: string[];
  total: number;
  measured: boolean;
  workers: string[];
  reliability: (number | null)[];
  rows: ImageRow[];
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

export interface PointsWorkers {
  says: string;
  total: number;
  rows: PointsWorker[];
}

export type Sweep = [iteration: number, objective: number | null, objects: number | null];

export interface Search {
  says: string;
  criterion: string;
  best: number | null;
  rows: Sweep[];
}

export interface Method {
  method: string;
  success: number | null;
  mae: number | null;
  runs: number;
  median: number | null;
  curve: [error: number, share: number][];
}

export interface Methods {
  says: string;
  rows: Method[];
}

export interface PointsPage {
  kind: "points";
  images: Images;
  workers: PointsWorkers;
  search: Search;
  methods: Methods | null;
}

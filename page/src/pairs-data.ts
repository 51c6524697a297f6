// The data of a page of pairs, as `crowdwise.report.pairs` writes it; its plain tables stand in the page itself.
import type { Box, Search } from "./points-data";

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
}

export interface ItemMap {
  says: string;
  notes: string[];
  total: number;
  doubtful: number;
  box: Box;
  clusters: number[];
  dots: Dots;
  pictures: Record<string, string>;
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

export interface PairsWorkers {
  says: string;
  total: number;
  rows: PairsWorker[];
}

export interface Shares {
  says: string;
  epochs: number[];
  components: number[];
  rows: number[][];
  total: number;
}

export interface Training {
  search: Search | null;
  shares: Shares | null;
}

export interface PairsPage {
  kind: "pairs";
  map: ItemMap | null;
  workers: PairsWorkers;
  training: Training | null;
}

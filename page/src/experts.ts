// Rows of expertise, gathered by worker.
import type { Expert } from "./generated";

export interface Person {
  worker: string;
  /** How often this worker gives a class when it is true, as estimated by a method. */
  share: (method: string, label: number) => number | null;
}

/** The workers, in the order of the rows. A value that comes again belongs to another of the same (shortened) name. */
export function people(rows: Expert[]): Person[] {
  const all = new Map<string, { worker: string; shares: Map<string, number> }>();
  const seen = new Map<string, number>();
  for (const { worker, label, method, share } of rows) {
    const value = `${label} ${method}`;
    const again = `${value}\n${worker}`;
    const nth = seen.get(again) ?? 0;
    seen.set(again, nth + 1);
    const who = `${nth} ${worker}`;
    const person = all.get(who) ?? { worker, shares: new Map<string, number>() };
    all.set(who, person);
    person.shares.set(value, share);
  }
  return [...all.values()].map(({ worker, shares }) => ({
    worker,
    share: (method, label) => shares.get(`${label} ${method}`) ?? null,
  }));
}

// The words of a tip about a click or an object.
import { type Child, el, name } from "./dom";
import { count, decimal, percent, plain, plural, significant } from "./format";
import type { Images, ImageRow, ObjectRow } from "./generated";
import { isOff } from "./stage-marks";

const workerOf = (images: Images, { clicks }: ImageRow, i: number): string => images.workers[clicks.worker[i]!] ?? "";

/** What a click is on. */
function onWhat({ clicks }: ImageRow, i: number): string {
  const sure = isOff(clicks, i) ? clicks.outlier[i] : clicks.probability[i];
  const what = isOff(clicks, i) ? "on no object" : `on object ${clicks.object[i]}`;
  return `${what}${typeof sure === "number" ? ` (probability ${percent(sure)})` : ""}`;
}

/** A click in one sentence. */
export const clickWords = (images: Images, image: ImageRow, i: number): string =>
  `${plain(workerOf(images, image, i))} ${onWhat(image, i)}`;

export function clickLines(images: Images, image: ImageRow, i: number): Child[][] {
  const reliability = images.reliability[image.clicks.worker[i]!] ?? null;
  return [
    [el("strong", {}, name(workerOf(images, image, i)))],
    [reliability !== null && `reliability ${percent(reliability)}`],
    [onWhat(image, i)],
    [`at ${significant(image.clicks.x[i]!)}, ${significant(image.clicks.y[i]!)}`],
  ];
}

const truthWords = (matched: boolean): string => (matched ? "matches a true object" : "matches no true object");

export function objectLines({ jobs }: ImageRow, object: ObjectRow): Child[][] {
  const { probability, supporters, clicks, spread, doubtful, matched } = object;
  return [
    [el("strong", {}, `Object ${object.object}`), doubtful && ", doubtful"],
    [probability !== null && `probability ${percent(probability)}`],
    [supporters !== null && `${count(supporters)} of ${plural(jobs, "worker")}`],
    [clicks !== null && `${decimal(clicks, 1)} clicks expected`],
    [spread !== null && `spread ${significant(spread)}`],
    [matched !== null && truthWords(matched)],
  ];
}

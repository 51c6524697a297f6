// A box with details of a place in a picture, beside it.
import { type Child, el } from "./dom";

const AWAY = 14; // pixels from the place

export interface Tip {
  node: HTMLElement;
  show: (x: number, y: number, lines: Child[][]) => void;
  hide: () => void;
}

/** A box beside a place, inside of what can be seen of `around`. */
export function tip(around: () => HTMLElement): Tip {
  const node = el("div", { class: "tip", "aria-hidden": "true", hidden: true });
  function show(x: number, y: number, lines: Child[][]): void {
    node.replaceChildren(...lines.filter((parts) => parts.some(Boolean)).map((parts) => el("div", {}, ...parts)));
    node.hidden = false;
    const { scrollLeft, scrollTop, clientWidth, clientHeight } = around();
    const [right, bottom] = [scrollLeft + clientWidth, scrollTop + clientHeight];
    const [wide, high] = [node.offsetWidth, node.offsetHeight];
    const beside = x + AWAY + wide <= right ? x + AWAY : x - AWAY - wide;
    node.style.left = `${Math.max(scrollLeft + 2, Math.min(beside, right - wide - 2))}px`;
    node.style.top = `${Math.max(scrollTop + 2, Math.min(y + AWAY, bottom - high - 2))}px`;
  }
  return {
    node,
    show,
    hide: () => {
      node.hidden = true;
    },
  };
}

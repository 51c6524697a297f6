// Boxes that scroll show it: an edge is shaded as long as there is more to see behind it.
import { el } from "./dom";

const SLACK = 1; // pixels: sizes are rounded
const SIDES = ["left", "right", "above", "below"] as const;

/** Keeps the classes `more-left`, `more-right`, `more-above` and `more-below` of `shaded` true of what `box` hides. */
function follow(box: HTMLElement, shaded: HTMLElement): void {
  let asked = 0;
  function mark(): void {
    asked = 0;
    const { scrollLeft, scrollTop, clientWidth, clientHeight, scrollWidth, scrollHeight } = box;
    const hidden = [
      scrollLeft,
      scrollWidth - clientWidth - scrollLeft,
      scrollTop,
      scrollHeight - clientHeight - scrollTop,
    ];
    SIDES.forEach((side, i) => shaded.classList.toggle(`more-${side}`, hidden[i]! > SLACK));
  }
  const soon = () => {
    asked ||= requestAnimationFrame(mark);
  };
  box.addEventListener("scroll", soon, { passive: true });
  const sizes = new ResizeObserver(soon);
  for (const each of [box, ...box.children]) sizes.observe(each);
}

/** The box in a frame that shades its edges; the keyboard still reaches the box itself. */
export function framed(box: HTMLElement): HTMLElement {
  const frame = el("div", { class: "scroller" });
  box.replaceWith(frame);
  frame.append(box);
  follow(box, frame);
  return frame;
}

// What the template wrote is there before the script runs. The navigation sticks to the window, so it is its own frame.
for (const box of document.querySelectorAll<HTMLElement>("main .scroll")) framed(box);
for (const nav of document.querySelectorAll<HTMLElement>("nav.sections")) follow(nav, nav);

// Walking the tasks by the keys j and k.

function typing(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement) return !["checkbox", "radio", "button"].includes(target.type);
  return target.isContentEditable || target.matches("textarea, select");
}

/** Moves `.current` (and the focus) in a list; at its end `showMore` may lengthen it. */
export function walk(list: HTMLElement, showMore: () => boolean, wanted: () => boolean): void {
  const current = () => list.querySelector<HTMLElement>(":scope > .current");

  function go(to: Element | null | undefined): void {
    if (!(to instanceof HTMLElement)) return;
    current()?.classList.remove("current");
    to.classList.add("current");
    to.focus({ preventScroll: true });
    to.scrollIntoView({ block: "nearest", behavior: "instant" });
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target) || !wanted()) return;
    const at = current();
    if (event.key === "j") {
      if (at && !at.nextElementSibling) showMore();
      go(at ? at.nextElementSibling : list.firstElementChild);
    } else if (event.key === "k") {
      go(at ? at.previousElementSibling : list.firstElementChild);
    } else return;
    event.preventDefault();
  });
  list.addEventListener("click", (event) => {
    const hit = event.target instanceof Element ? event.target.closest(".task") : null;
    if (hit && !window.getSelection()?.toString()) go(hit);
  });
}

// Small comforts around the page: where one is, and the button that copies the command.
import { button } from "./dom";

/** Marks the link of the section that is being read. */
export function followNavigation(): void {
  const nav = document.querySelector<HTMLElement>("nav.sections");
  if (!nav) return;
  const links = new Map([...nav.querySelectorAll("a")].map((link) => [link.hash.slice(1), link]));
  const seen = new Set<string>();
  const watcher = new IntersectionObserver(
    (changes) => {
      for (const { target, isIntersecting } of changes) {
        if (isIntersecting) seen.add(target.id);
        else seen.delete(target.id);
      }
      const first = [...links.keys()].find((id) => seen.has(id));
      if (first) mark(links.get(first)!);
    },
    { rootMargin: "-25% 0px -65% 0px" },
  );
  function mark(current: HTMLAnchorElement): void {
    for (const link of links.values()) link.removeAttribute("aria-current");
    current.setAttribute("aria-current", "location");
    // Only the bar itself may scroll here, never the page.
    nav!.scrollLeft = current.offsetLeft - nav!.clientWidth / 2 + current.offsetWidth / 2;
  }
  for (const section of document.querySelectorAll("main section[id]")) watcher.observe(section);
}

export function offerCopy(): void {
  const command = document.querySelector<HTMLElement>(".command");
  if (!command || !navigator.clipboard) return;
  const copy = button("copy", "Copy", () => {
    navigator.clipboard.writeText(command.querySelector("code")?.textContent ?? "").then(
      () => say("Copied"),
      () => say("Could not copy"),
    );
  });
  copy.setAttribute("aria-live", "polite");
  function say(text: string): void {
    copy.textContent = text;
    window.setTimeout(() => (copy.textContent = "Copy"), 2000);
  }
  command.append(copy);
}

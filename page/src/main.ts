// Draws the sections of the page from its data. Sections without a script stay as they are.
import { sentence } from "./dom";
import { followNavigation, offerCopy } from "./extras";
import { drawFigures } from "./figure";
import { SECTIONS, type Sections, type Shared } from "./generated";

interface Data extends Shared {
  sections: Record<string, unknown>; // by id
}

function drawSections({ sections, ...shared }: Data): void {
  for (const [id, data] of Object.entries(sections)) {
    const body = document.querySelector(`#${id} > .body`);
    if (!body) continue;
    try {
      const draw = SECTIONS[`${shared.kind}/${id}` as keyof Sections] as (data: unknown, shared: Shared) => HTMLElement[];
      body.replaceChildren(...draw(data, shared));
    } catch (problem) {
      // One section that fails must not take the others with it.
      console.error(id, problem);
      body.replaceChildren(sentence("This section could not be drawn."));
    }
  }
}

drawSections(JSON.parse(document.getElementById("data")?.textContent ?? "null") as Data);
drawFigures();
offerCopy();
followNavigation();
document.querySelector("main")?.setAttribute("data-ready", "yes");

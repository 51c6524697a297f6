// Fills the sections of the page from its data.
import { type Page, readData } from "./data";
import { sentence } from "./dom";
import { expertiseSection } from "./expertise";
import { followNavigation, offerCopy } from "./extras";
import { drawFigures } from "./figure";
import { groupsSection } from "./groups";
import { rocSection } from "./roc";
import { scalingSection } from "./scaling";
import {
  curveSection,
  mixupsSection,
  modelsSection,
  picturesSection,
  prevalenceSection,
  timesSection,
} from "./sections";
import { tasksSection } from "./tasks";
import { workersSection } from "./workers";

const SECTIONS: Record<string, (page: Page) => HTMLElement[]> = {
  prevalence: prevalenceSection,
  workers: workersSection,
  tasks: tasksSection,
  mixups: mixupsSection,
  curve: curveSection,
  times: timesSection,
  pictures: picturesSection,
  expertise: expertiseSection,
  groups: groupsSection,
  scaling: scalingSection,
  roc: rocSection,
  models: modelsSection,
};

const page = readData();
for (const [id, make] of Object.entries(SECTIONS)) {
  const body = document.querySelector(`#${id} > .body`);
  try {
    body?.replaceChildren(...make(page));
  } catch (problem) {
    // One section that fails must not take the others with it.
    console.error(id, problem);
    body?.replaceChildren(sentence("This section could not be drawn."));
  }
}
drawFigures();
offerCopy();
followNavigation();
document.querySelector("main")?.setAttribute("data-ready", "yes");

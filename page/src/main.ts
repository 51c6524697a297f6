// Fills the sections of the page from its data: that of labels, of points, or of pairs. Other pages need no script.
import { type Page, readData } from "./data";
import { sentence } from "./dom";
import { expertiseSection } from "./expertise";
import { followNavigation, offerCopy } from "./extras";
import { drawFigures } from "./figure";
import { groupsSection } from "./groups";
import { imagesSection } from "./images";
import { methodsSection } from "./methods";
import type { PairsPage } from "./pairs-data";
import { mapSection } from "./pairs-map";
import { trainingSection } from "./pairs-training";
import { weightsSection } from "./pairs-weights";
import type { PointsPage } from "./points-data";
import { reliabilitySection } from "./reliability";
import { rocSection } from "./roc";
import { scalingSection } from "./scaling";
import { searchSection } from "./search";
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

/** What fills each section; null leaves it as it stands. */
type Sections<P> = Record<string, (page: P) => HTMLElement[] | null>;

const LABELS: Sections<Page> = {
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

const POINTS: Sections<PointsPage> = {
  images: imagesSection,
  workers: reliabilitySection,
  search: searchSection,
  methods: methodsSection,
};

const PAIRS: Sections<PairsPage> = {
  items: mapSection,
  workers: weightsSection,
  search: trainingSection,
};

function fill<P>(sections: Sections<P>, page: P): void {
  for (const [id, make] of Object.entries(sections)) {
    const body = document.querySelector(`#${id} > .body`);
    if (!body) continue;
    try {
      const made = make(page);
      if (made) body.replaceChildren(...made);
    } catch (problem) {
      // One section that fails must not take the others with it.
      console.error(id, problem);
      body.replaceChildren(sentence("This section could not be drawn."));
    }
  }
}

const data = readData();
if (data.kind === "labels") fill(LABELS, data);
else if (data.kind === "pairs") fill(PAIRS, data);
else if (data.kind === "points") fill(POINTS, data);
drawFigures();
offerCopy();
followNavigation();
document.querySelector("main")?.setAttribute("data-ready", "yes");

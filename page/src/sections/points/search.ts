// How the number of objects was found.
import type { Search } from "../../generated";
import { searchFigure } from "../../search";

export const draw = (search: Search): HTMLElement[] => searchFigure(search, "objects");

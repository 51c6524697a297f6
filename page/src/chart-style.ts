// What all charts share. Colours are CSS variables, so that light and dark need no redrawing.

export const COOL = "var(--cool)";
export const WARM = "var(--warm)";
export const FAINT = "var(--faint)";
export const PAPER = "var(--paper)";
export const NARROW = 520;

// Plot puts a style into every chart; with one class name its text is always the same, and the page's policy allows it.
export const COMMON = { className: "plot", style: { fontSize: "12px", fontFamily: "inherit" } } as const;
export const AXIS = { tickSize: 0, labelArrow: "none" } as const;

// Numbers and names as text.

const THIN = "\u202f"; // narrow no-break space
const BIDI_MARKS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** A count, or an expected count with one digit, with thin spaces between thousands. */
export function count(value: number): string {
  const text = Number.isInteger(value) || Math.abs(value) >= 1000 ? value.toFixed(0) : value.toFixed(1);
  return text.replace(/\B(?=(\d{3})+(?!\d))/g, (gap, _, at: number) => (text.slice(0, at).includes(".") ? gap : THIN));
}

export function percent(value: number, digits = 1): string {
  return `${(100 * value).toFixed(digits)}${THIN}%`;
}

export function decimal(value: number, digits = 2): string {
  return value.toFixed(digits).replace(/^-/, "\u2212");
}

/** Seconds, with as many digits as are worth reading. */
export function seconds(value: number): string {
  return `${value >= 100 ? count(Math.round(value)) : value.toFixed(value < 1 ? 2 : 1)}${THIN}s`;
}

/** A number in three digits that count, at most; from a thousand on it is a count. */
export function significant(value: number): string {
  return Math.abs(value) >= 999.5 ? count(Math.round(value)) : String(Number(value.toPrecision(3)));
}

export function plural(n: number, one: string, many = `${one}s`): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}

/** A name as it may stand inside other text: it cannot turn the direction of what surrounds it. */
export function plain(name: string): string {
  return `\u2068${name.replace(BIDI_MARKS, "")}\u2069`;
}

/** A name in at most `most` characters, for places where text cannot wrap. */
export function short(name: string, most: number): string {
  const letters = Array.from(name.replace(BIDI_MARKS, "").replace(/\s+/g, " ")); // a chart takes a new line as one
  return plain(letters.length <= most ? letters.join("") : `${letters.slice(0, Math.max(1, most - 1)).join("")}\u2026`);
}

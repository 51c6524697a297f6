// Writes page.js, page.css, plot.css and THIRD_PARTY_NOTICES.txt, by default to where the Python package looks for them.
//   node build.mjs [folder]
// The same sources give the same bytes: nothing of the machine or the day goes into them.
import { build } from "esbuild";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { notices } from "./notices.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2] ? resolve(process.argv[2]) : join(here, "../src/crowdwise/report/static");
const common = {
  absWorkingDir: here,
  minify: true,
  charset: "ascii",
  legalComments: "eof", // those of files; notices.mjs collects the licences of packages
  write: false,
  logLevel: "warning",
};

/** The text of the one file that esbuild made, and what it made it of. */
async function bundle(entry, options) {
  const { outputFiles, metafile } = await build({ ...common, entryPoints: [entry], metafile: true, ...options });
  return { text: outputFiles[0].text, metafile };
}

/**
 * The style element that Plot puts into each chart, as it stands there: the page's policy allows it by its hash.
 * It is read from Plot's own source so that a new version of Plot cannot drift from it unseen.
 */
async function plotStyle() {
  const source = await readFile(join(here, "node_modules/@observablehq/plot/src/plot.js"), "utf8");
  const found = source.match(/append\("style"\)\.text\(\s*`([^`]*)`/);
  if (!found) throw new Error("the style that Plot inserts was not found in its source");
  return found[1].replaceAll("${className}", "plot");
}

/** What the page's policy forbids must not be in the script, nor what would end its element early. */
function refuse(script) {
  for (const bad of [/\beval\(/, /new Function\b/, /<\/script/i, /<!--/]) {
    if (bad.test(script)) throw new Error(`the script holds ${bad}`);
  }
}

const script = await bundle("src/main.ts", { bundle: true, format: "iife", target: "es2020", treeShaking: true });
const style = await bundle("src/page.css", { target: "es2022" });
refuse(script.text);

await mkdir(out, { recursive: true });
for (const [name, text] of [
  ["page.js", script.text],
  ["page.css", style.text],
  ["plot.css", await plotStyle()],
  ["THIRD_PARTY_NOTICES.txt", await notices(here, script.metafile)],
]) {
  await writeFile(join(out, name), text);
  console.log(`${name}: ${Buffer.byteLength(text)} bytes`);
}

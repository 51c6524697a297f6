// The notices of the packages that are in the script of the page: their licences ask for them in every copy.
import { existsSync } from "node:fs";
import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";

const MODULES = "node_modules/";
const HEAD = "The script of the report page contains these packages, under the licences that follow them.";

/** The folder of the package that a file belongs to, or null for a file of our own. */
function packageOf(file) {
  const start = file.lastIndexOf(MODULES);
  if (start < 0) return null;
  const words = file.slice(start + MODULES.length).split("/");
  return file.slice(0, start) + MODULES + words.slice(0, words[0].startsWith("@") ? 2 : 1).join("/");
}

/** Where a package finds one that it depends on: inside itself, beside itself, or further out. */
function found(root, folder, name) {
  for (let at = `${folder}/`; ; at = at.slice(0, at.lastIndexOf(MODULES))) {
    const place = at + MODULES + name;
    if (!at.includes(MODULES) || existsSync(join(root, place))) return place;
  }
}

async function described(root, folder) {
  const text = await readFile(join(root, folder, "package.json"), "utf8");
  const { name, version, license, dependencies = {} } = JSON.parse(text);
  const others = Object.keys(dependencies).map((each) => found(root, folder, each));
  return { folder, name, version, license, dependencies: others };
}

/**
 * The packages in the output: those of the files that esbuild kept, and those that a package has inside its own files.
 * D3 publishes each package as one built file, so esbuild never sees what was built into it: a dependency of which it
 * read no file is taken to be one of these.
 */
export async function bundled(root, { inputs, outputs }) {
  const packages = (files) => new Set(files.map(packageOf).filter(Boolean));
  const written = Object.values(outputs).flatMap((each) => Object.entries(each.inputs));
  const kept = written.filter(([, { bytesInOutput }]) => bytesInOutput > 0).map(([file]) => file);
  const [read, all, made] = [packages(Object.keys(inputs)), packages(kept), []];
  for (const folder of all) {
    const each = await described(root, folder); // what is added to a set on the way is visited as well
    each.dependencies.filter((other) => !read.has(other)).forEach((other) => all.add(other));
    made.push({ ...each, files: kept.filter((file) => packageOf(file) === folder) });
  }
  return made.sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** The licence of a package as it came: the line that names its owner, and the rest. */
async function licence(root, { folder, name }) {
  const file = (await readdir(join(root, folder))).find((each) => /^licen[cs]e/i.test(each));
  if (!file) throw new Error(`${name} is in the script, but has no file LICENSE`);
  const whole = await readFile(join(root, folder, file), "utf8");
  const [owner] = whole.match(/^Copyright.*$/m) ?? [];
  if (!owner) throw new Error(`the licence of ${name} has no line that begins with Copyright`);
  return { owner, text: whole.replace(owner, "").trim() };
}

/** Notices of others inside the files of a package that esbuild kept: comments with a copyright, beyond the banner. */
async function inside(root, { files }) {
  const texts = await Promise.all(files.map((file) => readFile(join(root, file), "utf8")));
  const comments = texts.flatMap((text) => text.match(/(?:^[ \t]*\/\/.*\n?)+|\/\*[^]*?\*\//gm) ?? []);
  const plain = comments.map((each) => each.replace(/^[ \t]*(?:\/\/|\/?\*+\/?) ?/gm, "").trim());
  return plain.filter((each) => /copyright/i.test(each) && !each.startsWith("https://d3js.org/"));
}

/** The notices as text. A licence that several packages share stands there once, below all of them. */
export async function notices(root, metafile) {
  const shared = new Map();
  for (const each of await bundled(root, metafile)) {
    const { owner, text } = await licence(root, each);
    const others = (await inside(root, each)).map((notice) => notice.replace(/^/gm, "  "));
    const key = text.replace(/\s+/g, " ");
    const { lines = [] } = shared.get(key) ?? {};
    shared.set(key, { lines: [...lines, `${each.name} ${each.version} (${each.license}): ${owner}`, ...others], text });
  }
  const parts = [...shared.values()].map(({ lines, text }) => `${lines.join("\n")}\n\n${text}\n`);
  return [HEAD + "\n", ...parts].join("\n");
}

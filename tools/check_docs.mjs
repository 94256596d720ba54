// Checks the Markdown of the project: line width, links, anchors, and the paths it names.
//
//   node tools/check_docs.mjs [FILE...]      (default: README.md, CHANGELOG.md, ..., docs/**)
//
// Lines are at most 100 columns outside tables, code, pictures and lines that cannot break (a long
// URL). A relative link must lead to a file, an anchor to a heading, and a path in backticks that
// starts with a folder of the repository must exist.
import { existsSync, readFileSync, readdirSync, statSync } from "node:fs";
import { dirname, join, normalize, relative } from "node:path";
import { fileURLToPath } from "node:url";

const root = normalize(join(dirname(fileURLToPath(import.meta.url)), ".."));
const widest = 100;
const folders = ["bench", "cmake", "data", "docs", "examples", "packages", "src", "tests", "tools", "web"];

function markdownFiles(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return markdownFiles(path);
    return entry.name.endsWith(".md") ? [path] : [];
  });
}

function allFiles() {
  const top = readdirSync(root).filter((name) => name.endsWith(".md")).map((name) => join(root, name));
  return [...top, ...markdownFiles(join(root, "docs")), ...markdownFiles(join(root, "data"))].sort();
}

/** Lines with their number, fenced code left out. */
function proseLines(text) {
  const lines = [];
  let fenced = false;
  text.split("\n").forEach((line, index) => {
    if (/^\s*(```|~~~)/.test(line)) fenced = !fenced;
    else if (!fenced) lines.push({ number: index + 1, line });
  });
  return lines;
}

/** GitHub's anchor of a heading. */
function slug(heading) {
  return heading
    .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, "")
    .trim()
    .replace(/\s/g, "-");
}

function anchors(text) {
  const seen = new Map();
  const found = new Set();
  for (const { line } of proseLines(text)) {
    const heading = /^#{1,6}\s+(.*)$/.exec(line);
    if (!heading) continue;
    const name = slug(heading[1]);
    const count = seen.get(name) ?? 0;
    seen.set(name, count + 1);
    found.add(count === 0 ? name : `${name}-${count}`);
  }
  return found;
}

function isTooWide(line) {
  if ([...line].length <= widest || /^\s*(\||!\[)/.test(line)) return false;
  if (/^( {4}|\t)/.test(line) && !/^\s*([-*]|\d+\.)\s/.test(line)) return false; // code by indentation
  // What cannot be broken may stick out: one word beyond an indent or a list mark.
  return line.replace(/^\s*([-*>]|\d+\.)?\s*/, "").includes(" ") && !/https?:\S{60,}/.test(line);
}

function brokenLink(target, file) {
  if (/^[a-z]+:/i.test(target)) return "";
  const [path, anchor] = target.split("#");
  const there = path === "" ? file : join(dirname(file), decodeURIComponent(path));
  if (!existsSync(there)) return "no such file";
  if (!anchor || !there.endsWith(".md")) return "";
  return anchors(readFileSync(there, "utf8")).has(anchor) ? "" : "no such heading";
}

/** Paths in backticks that name something of the repository: no placeholders, no wildcards. */
function namedPaths(line) {
  return [...line.matchAll(/`([^`\s]+)`/g)]
    .map((match) => match[1].replace(/[.,:;]$/, "").replace(/:\d+(-\d+)?$/, ""))
    .filter((path) => folders.includes(path.split("/")[0]) && path.includes("/"))
    .filter((path) => !/[*{}<>$"'()|…]|NAME|ROOM|DIR|LAW/.test(path));
}

const files = process.argv.length > 2 ? process.argv.slice(2) : allFiles();
const problems = [];
for (const file of files) {
  const name = relative(root, file);
  const inRoot = (path) => existsSync(join(root, path)) || existsSync(join(dirname(file), path));
  for (const { number, line } of proseLines(readFileSync(file, "utf8"))) {
    const complain = (what) => problems.push(`${name}:${number}: ${what}`);
    if (isTooWide(line)) complain(`${[...line].length} columns; wrap at ${widest}`);
    for (const match of line.matchAll(/\]\(([^()\s]+)\)/g)) {
      const why = brokenLink(match[1], file);
      if (why) complain(`link to ${match[1]}: ${why}`);
    }
    // A changelog may name paths that are gone.
    if (name === "CHANGELOG.md") continue;
    for (const path of namedPaths(line)) {
      if (!inRoot(path)) complain(`\`${path}\` does not exist`);
    }
  }
}
for (const problem of problems) console.log(problem);
if (problems.length > 0) process.exit(1);
console.log(`docs: ${files.length} pages, links and widths are right`);

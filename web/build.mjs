// Bundles src/ into one HTML template per page: node build.mjs FOLDER
//
// The script and the style sheet are inside the page, so that it opens from file:// without a
// network. The marks @fathom-...@ are filled in by src/report.
import { build } from 'esbuild';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { generate_types } from './generate_types.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const folder = process.argv[2] ?? join(here, 'dist');

/// FOLDER/NAME.html of a script and a style sheet.
const kPages = {
  report: ['main.ts', 'style/report.css'],
  lab: ['lab/main.ts', 'style/lab.css'],
  probe: ['probe/main.ts', 'style/probe.css'],
  map: ['map/main.ts', 'style/map.css'],
  serve: ['serve/main.ts', 'style/serve.css'],
};

async function bundle(entry) {
  const result = await build({
    entryPoints: [join(here, 'src', entry)],
    bundle: true,
    minify: true,
    write: false,
    format: 'iife',
    target: ['es2020', 'chrome100', 'firefox100', 'safari15'],
    legalComments: 'inline',
  });
  return result.outputFiles[0].text;
}

async function build_page(name, [script_file, style_file]) {
  // A closing tag inside a script or style would end it early; esbuild escapes both by itself.
  const script = await bundle(script_file);
  const style = await bundle(style_file);
  if (/<\/script/i.test(script) || /<\/style/i.test(style)) throw new Error('closing tag in bundle');
  let page = await readFile(join(here, 'src', 'page.html'), 'utf8');
  page = page.replace('@style@', () => style.trim()).replace('@script@', () => script.trim());
  for (const mark of ['title', 'policy', 'news', 'document'].map((name) => `@fathom-${name}@`)) {
    if (page.split(mark).length !== 2) throw new Error(`${mark} must stand once in the template`);
  }
  await writeFile(join(folder, `${name}.html`), page);
}

await generate_types();
await mkdir(folder, { recursive: true });
for (const [name, files] of Object.entries(kPages)) await build_page(name, files);

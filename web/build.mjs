// Bundles src/ into one HTML template: node build.mjs OUTPUT.html
//
// The script and the style sheet stand inside the page, so that it opens from file:// without a
// network. The two marks @fathom-title@ and @fathom-document@ are filled in by src/report.
import { build } from 'esbuild';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { generate_types } from './generate_types.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const output = process.argv[2] ?? join(here, 'dist', 'report.html');

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

await generate_types();

// A closing tag inside a script or style would end it early; esbuild escapes both by itself.
const script = await bundle('main.ts');
const style = await bundle('style/report.css');
if (/<\/script/i.test(script) || /<\/style/i.test(style)) throw new Error('closing tag in bundle');

let page = await readFile(join(here, 'src', 'page.html'), 'utf8');
page = page.replace('@style@', () => style.trim()).replace('@script@', () => script.trim());
for (const mark of ['@fathom-title@', '@fathom-document@']) {
  if (page.split(mark).length !== 2) throw new Error(`${mark} must stand once in the template`);
}
await mkdir(dirname(output), { recursive: true });
await writeFile(output, page);

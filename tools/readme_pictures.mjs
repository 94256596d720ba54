// The two pictures of README.md, drawn by the program's own pages in Chromium:
//
//   FATHOM=build/release/fathom node tools/readme_pictures.mjs
//
// docs/images/map.png is the map of shapes at 7B; docs/images/report.png the report of the study in
// docs/results/law-h200. Each shows the page from its answer to the end of its first chart.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { launch } from '../web/test/browser.mjs';

const kMargin = 24, kBelow = 10;
const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const images = join(root, 'docs', 'images');
const folder = mkdtempSync(join(tmpdir(), 'fathom-pictures-'));
const fathom = (...words) => execFileSync(process.env.FATHOM, words, { stdio: 'inherit' });

async function picture(browser, file, name, width) {
  const page = await browser.newPage({ viewport: { width, height: 2000 } });
  await page.goto(pathToFileURL(file).href);
  await page.waitForSelector('figure svg, figure canvas');
  const edge = (selector, side) =>
    page.evaluate(
      ([wanted, end]) => document.querySelector(wanted).getBoundingClientRect()[end],
      [selector, side],
    );
  const top = (await edge('.answer', 'top')) - kMargin;
  const height = (await edge('figure', 'bottom')) + kBelow - top;
  await page.screenshot({ path: join(images, `${name}.png`), clip: { x: 0, y: top, width, height } });
}

mkdirSync(images, { recursive: true });
const browser = await launch();
try {
  const map = join(folder, 'map.html');
  fathom('plan', '7B', '--html', map);
  await picture(browser, map, 'map', 1000);

  const study = join(folder, 'study');
  mkdirSync(study);
  const records = join(root, 'docs', 'results', 'law-h200', 'records.tar.xz');
  execFileSync('tar', ['xJf', records, '-C', study]);
  const report = join(folder, 'report.html');
  fathom('study', 'report', study, '-o', report);
  await picture(browser, report, 'report', 1100);
} finally {
  await browser.close();
  rmSync(folder, { recursive: true });
}

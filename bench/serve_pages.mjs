// How fast pages of 'fathom serve' open in Chromium: a study of 10,000 run folders, the overview and
// the map; and how soon the map as a file paints.
//
//   FATHOM=build/release/fathom node bench/serve_pages.mjs
//
// first      the first page requested after the start: the server reads every run folder
// again      the same page once more
// paint      first contentful paint; ready: the script has run and the page is idle
import { execFileSync, spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { launch, open_address, Reports, write_study } from '../web/test/browser.mjs';

const ms = (value) => `${value.toFixed(0).padStart(6)} ms`;
const print = (name, ...parts) => console.log(name.padEnd(34), ...parts);

async function opened(browser, address) {
  const page = await open_address(browser, address);
  const times = await page.evaluate(() => ({
    paint: performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN,
    ready: performance.getEntriesByName('fathom-ready')[0].startTime,
    bytes: performance.getEntriesByType('navigation')[0].decodedBodySize,
  }));
  await page.close();
  return times;
}

const show = (name, { paint, ready, bytes }) =>
  print(name, `paint${ms(paint)}   ready${ms(ready)}   ${(bytes / 1e6).toFixed(2)} MB`);

const reports = new Reports(process.env.FATHOM ?? 'build/release/fathom');
const browser = await launch();
let server = null;
try {
  const map = join(reports.folder, 'map.html');
  execFileSync(reports.program, ['plan', '7B', '--html', map], { stdio: 'ignore' });
  show('map as a file', await opened(browser, pathToFileURL(map).href));

  write_study(join(reports.folder, 'served', 'large'), reports.document('large'));
  server = spawn(reports.program, ['serve', join(reports.folder, 'served'), '--port', '0']);
  const lines = createInterface({ input: server.stdout });
  const address = (await new Promise((resolve) => lines.once('line', resolve))).trim();
  show('study of 10,000 runs, first', await opened(browser, `${address}study/large`));
  show('study of 10,000 runs, again', await opened(browser, `${address}study/large`));
  show('overview', await opened(browser, address));
  show('map, planned now', await opened(browser, `${address}map?plan=7B`));
} finally {
  server?.kill('SIGINT');
  await browser.close();
  reports.remove();
}

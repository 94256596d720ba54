// What the browser tests and the benchmark share: Chromium from the PATH, pages rendered by the
// program itself, and a page that remembers every error and every request it made.
import { execFileSync } from 'node:child_process';
import { accessSync, constants, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';
import { kDocuments } from './make_document.mjs';

export function find_chromium() {
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    for (const name of ['chromium', 'chromium-browser']) {
      try {
        accessSync(join(folder, name), constants.X_OK);
        return join(folder, name);
      } catch {
        // Not here.
      }
    }
  }
  return null;
}

export const launch = () => chromium.launch({ executablePath: find_chromium() });

export class Reports {
  constructor(program) {
    this.program = program;
    this.folder = mkdtempSync(join(tmpdir(), 'fathom-report-'));
    this.documents = new Map();
  }

  document(name) {
    if (!this.documents.has(name)) this.documents.set(name, kDocuments[name]());
    return this.documents.get(name);
  }

  /// Writes the document, renders it with `fathom study report` and returns the page's file.
  render(name) {
    const source = join(this.folder, `${name}.json`);
    const page = join(this.folder, `${name}.html`);
    writeFileSync(source, JSON.stringify(this.document(name)));
    execFileSync(this.program, ['study', 'report', source, '-o', page]);
    return page;
  }

  remove() {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/// Opens a page and gives it `errors` (console and uncaught) and `requests` (everything asked for).
export async function open(browser, file, options = {}) {
  const page = await browser.newPage({
    viewport: { width: 1280, height: 900 },
    reducedMotion: 'reduce',
    ...options,
  });
  page.setDefaultTimeout(20_000);
  page.errors = [];
  page.requests = [];
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning')
      page.errors.push(message.text());
  });
  page.on('pageerror', (error) => page.errors.push(String(error)));
  page.on('request', (request) => page.requests.push(request.url()));
  page.address = pathToFileURL(file).href;
  await page.goto(page.address);
  await page.waitForFunction(() => performance.getEntriesByName('fathom-ready').length > 0);
  return page;
}

export const kCharts = [
  'loss-by-size',
  'excess-by-size',
  'transition-widths',
  'depth-width-map',
  'speed',
  'cost',
  'loss-curves',
];

export async function show(page, id) {
  await page.locator(`#${id}`).scrollIntoViewIfNeeded();
  await page.locator(`#${id} .stage > svg`).waitFor();
}

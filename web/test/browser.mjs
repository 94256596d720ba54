// What the browser tests and the benchmark share: Chromium from the PATH, pages rendered by the
// program itself, and a page that remembers every error and every request it made.
import { execFileSync, spawn } from 'node:child_process';
import {
  accessSync,
  constants,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';
import { kDocuments } from './make_document.mjs';

/// The headless shell first: a page takes two thirds of the processor time in it.
export function find_chromium() {
  for (const name of ['chromium-headless-shell', 'chromium', 'chromium-browser']) {
    for (const folder of (process.env.PATH ?? '').split(delimiter)) {
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

  /// A study's folder with the runs of a document as records, as if they had been trained, and the
  /// document and page that the program makes of it.
  study(name) {
    const folder = join(this.folder, `study-${name}`);
    write_study(folder, this.document(name));
    execFileSync(this.program, ['study', 'report', folder], { stdio: ['ignore', 'pipe', 'inherit'] });
    const file = join(folder, 'report.json');
    return { document: JSON.parse(readFileSync(file, 'utf8')), page: join(folder, 'report.html') };
  }

  remove() {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/// The program's server over a folder, on any free port.
export class Server {
  static async start(program, ...words) {
    const server = new Server();
    server.process = spawn(program, ['serve', ...words, '--port', '0']);
    server.ended = new Promise((resolve) => server.process.on('exit', resolve));
    const lines = createInterface({ input: server.process.stdout });
    server.address = (await new Promise((resolve) => lines.once('line', resolve))).trim();
    return server;
  }

  page(path) {
    return new URL(path, this.address).href;
  }

  async stop() {
    this.process.kill('SIGINT');
    return this.ended;
  }
}

const kStudySpec = `title = "Planted"
question = "Where does depth pay?"
[corpus]
path = "gone.txt"
[grid]
kind = "list"
shapes = ["2x64"]
[budget]
tokens = "100M"
`;

/// Names of record.json where they differ from those of a table.
const kRecordNames = {
  params: 'non_embedding_parameters',
  total_params: 'parameters',
  loss: 'final_loss',
  bits_per_byte: 'final_bits_per_byte',
  status: 'outcome',
};

export function write_study(folder, { runs, curves }) {
  const points = new Map(curves.map((curve) => [curve.id, curve.points]));
  const write = (run_folder, run) => {
    const { tokens_per_second, ...fields } = { ...run, reason: run.reason ?? '', steps: 1000 };
    const record = Object.entries(fields).map(([key, value]) => [kRecordNames[key] ?? key, value]);
    writeFileSync(join(run_folder, 'record.json'), JSON.stringify(Object.fromEntries(record)));
    const lines = points
      .get(run.id)
      .map(([tokens, loss]) => ({ step: Math.round((1000 * tokens) / run.tokens), eval_loss: loss }))
      .map((line) => `${JSON.stringify(line)}\n`);
    writeFileSync(join(run_folder, 'metrics.jsonl'), lines.join(''));
  };
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'study.toml'), kStudySpec);
  for (const run of runs) {
    const run_folder = join(folder, 'runs', run.id);
    mkdirSync(run_folder, { recursive: true });
    write(run_folder, run);
  }
}

export const open = (browser, file, options = {}) =>
  open_address(browser, pathToFileURL(file).href, options);

/// Opens a page and gives it `errors` (console and uncaught) and `requests` (everything asked for).
export async function open_address(browser, address, options = {}) {
  const page = await browser.newPage({
    viewport: { width: 1280, height: 900 },
    reducedMotion: 'reduce',
    ...options,
  });
  page.setDefaultTimeout(90_000);  // generous: compilers may share the cores
  page.errors = [];
  page.requests = [];
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning')
      page.errors.push(message.text());
  });
  page.on('pageerror', (error) => page.errors.push(String(error)));
  page.on('request', (request) => page.requests.push(request.url()));
  page.address = address;
  await page.goto(page.address);
  await page.waitForFunction(() => performance.getEntriesByName('fathom-ready').length > 0);
  return page;
}

/// The document embedded in a page's file.
export function document_of(file) {
  const text = readFileSync(file, 'utf8');
  const begin = text.indexOf('>', text.indexOf('id="fathom-document"')) + 1;
  return JSON.parse(text.slice(begin, text.indexOf('</script>', begin)));
}

/// Pixels by which the page is wider than its window.
export const overflow = (page) =>
  page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

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
  // Not scrollIntoViewIfNeeded, which waits for two equal frames: a starved browser draws few.
  await page.locator(`#${id}`).evaluate((element) => element.scrollIntoView({ block: 'center' }));
  await page.locator(`#${id} .stage > svg`).waitFor();
}

// Rewrites the report of a study whose run folders were not kept, with today's fit and page:
//   FATHOM=build/release/fathom node tools/refit_report.mjs docs/results/levine-h200/completep
//
// The old page holds its document; runs, curves and spec are taken from it, the fit is redone from
// the table of points, and law.json is rewritten with it.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const [folder] = process.argv.slice(2);
const program = process.env.FATHOM;
if (!folder || !program) {
  console.error('usage: FATHOM=PROGRAM node tools/refit_report.mjs STUDY_FOLDER');
  process.exit(2);
}

const page = join(folder, 'report.html');
const kElement = /<script type="application\/json" id="fathom-document">([\s\S]*?)<\/script>/;
const old = JSON.parse(kElement.exec(readFileSync(page, 'utf8'))[1]);
const kMost = 1 << 30;
const fresh = JSON.parse(
  execFileSync(program, ['study', 'export', folder, '--format', 'report'], { maxBuffer: kMost }),
);
const { answer, fit, published } = fresh;

const scratch = mkdtempSync(join(tmpdir(), 'fathom-refit-'));
const document = join(scratch, 'document.json');
writeFileSync(document, JSON.stringify({ ...old, answer, fit, published }));
execFileSync(program, ['study', 'report', document, '-o', page]);
rmSync(scratch, { recursive: true });

// The browser tests:   FATHOM=build/release/fathom node test/all.mjs [NAME...]
// With names only those sets, e.g. `map serve`, so that ctest can run several processes at once.
// Exit code 77 means skipped: there is no Chromium on the PATH.
import test, { after, before } from 'node:test';
import { find_chromium, launch, Reports } from './browser.mjs';
import { chart_tests } from './charts_test.mjs';
import { lab_tests } from './lab_test.mjs';
import { law_tests } from './law_test.mjs';
import { map_tests } from './map_test.mjs';
import { page_tests } from './page_test.mjs';
import { schema_tests } from './schema_test.mjs';
import { serve_tests } from './serve_test.mjs';
import { table_tests } from './table_test.mjs';

if (find_chromium() === null) {
  console.log('SKIPPED: chromium is not on the PATH (Debian package chromium-headless-shell)');
  process.exit(77);
}
if (!process.env.FATHOM) {
  console.log('set FATHOM to the fathom program');
  process.exit(2);
}

let running = null;
const reports = new Reports(process.env.FATHOM);
before(async () => {
  running = await launch();
});
after(async () => {
  await running?.close();
  reports.remove();
});

const context = { browser: () => running, reports };
const sets = {
  schema: schema_tests,
  page: page_tests,
  law: law_tests,
  charts: chart_tests,
  table: table_tests,
  lab: lab_tests,
  map: map_tests,
  serve: serve_tests,
};
const names = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(sets);
for (const name of names) {
  if (!(name in sets)) {
    console.log(`${name}: no such set; there are ${Object.keys(sets).join(', ')}`);
    process.exit(2);
  }
  sets[name](test, context);
}

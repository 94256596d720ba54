// The pages of `fathom probe` in a browser: one model, two side by side, and both in `fathom serve`.
//   FATHOM=build/release/fathom node test/probe.mjs
// Exit code 77 means skipped: there is no Chromium on the PATH.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import test, { after, before } from 'node:test';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Ajv from 'ajv';
import { document_of, find_chromium, launch, open, open_address, overflow, Server } from './browser.mjs';
import { write_model } from './small_model.mjs';

if (find_chromium() === null) {
  console.log('SKIPPED: chromium is not on the PATH (Debian package chromium-headless-shell)');
  process.exit(77);
}
const program = process.env.FATHOM;
if (!program) {
  console.log('set FATHOM to the fathom program');
  process.exit(2);
}

let browser = null;
const folder = mkdtempSync(join(tmpdir(), 'fathom-probe-'));
const served = join(folder, 'served');
const page_file = join(folder, 'page.html');
const pair_file = join(folder, 'pair.html');
const probe = (...words) => execFileSync(program, ['probe', ...words], { encoding: 'utf8' });

before(async () => {
  const deep = join(folder, 'deep');
  const shallow = join(folder, 'shallow');
  write_model(deep);
  write_model(shallow, { layers: 2 });
  mkdirSync(served);
  const words = (model) => [model, '--ids', join(deep, 'ids.txt'), '--json'];
  writeFileSync(join(served, 'deep.json'), probe(...words(deep), '--report', page_file));
  const small = join(folder, 'small.json');
  writeFileSync(small, probe(...words(shallow)));
  probe('--compare', join(served, 'deep.json'), small, '--report', pair_file);
  browser = await launch();
});
after(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

/// Texts that extend beyond the picture they are in.
const clipped = (page) =>
  page.evaluate(() => {
    const found = [];
    for (const text of document.querySelectorAll('svg text')) {
      const own = text.getBoundingClientRect();
      const picture = text.closest('svg').getBoundingClientRect();
      if (own.width > 0 && (own.left < picture.left - 1 || own.right > picture.right + 1))
        found.push(text.textContent);
    }
    return found;
  });

const kScreens = [
  ['desktop', {}],
  ['phone', { viewport: { width: 390, height: 844 }, hasTouch: true }],
  ['dark', { colorScheme: 'dark' }],
];
const picture = async (page, name) => {
  const place = process.env.PROBE_PICTURES;
  if (place) await page.screenshot({ path: join(place, `${name}.png`), fullPage: true });
};

test('probe: the document follows its schema', () => {
  const schema = JSON.parse(readFileSync(new URL('../schema/probe.schema.json', import.meta.url)));
  const check = new Ajv({ strict: false }).compile(schema);
  const { title, ...document } = document_of(page_file);
  assert.equal(title, 'Probe of deep');
  assert.ok(check(document), JSON.stringify(check.errors));
});

for (const [name, options] of kScreens) {
  test(`probe: the page on ${name} draws everything and asks for nothing`, async () => {
    const page = await open(browser, page_file, options);
    assert.equal(await page.locator('.strip tbody tr').count(), 3);
    assert.equal(await page.locator('.distance-map rect').count(), 6);
    assert.equal(await page.locator('.head-grid td').count(), 12);
    for (const id of ['cut-curves', 'lens-loss', 'norms']) {
      await page.locator(`#${id}`).evaluate((element) => element.scrollIntoView());
      await page.locator(`#${id} .stage > svg`).waitFor();
    }
    assert.match(await page.locator('.lead').innerText(), /on this text/);
    assert.deepEqual(await clipped(page), []);
    assert.equal(await overflow(page), 0);
    assert.deepEqual(page.errors, []);
    assert.deepEqual(page.requests, [page.address]);
    await picture(page, `probe-${name}`);
    await page.close();
  });
}

for (const [name, options] of kScreens) {
  test(`probe: two models beside each other on ${name}`, async () => {
    const page = await open(browser, pair_file, options);
    assert.equal(await page.locator('h1').innerText(), 'deep beside shallow');
    assert.equal(await page.locator('.strip tbody tr').count(), 3);
    await page.locator('#compared-cuts').evaluate((element) => element.scrollIntoView());
    await page.locator('#compared-cuts .stage > svg').waitFor();
    assert.equal(await overflow(page), 0);
    assert.deepEqual(page.errors, []);
    await picture(page, `pair-${name}`);
    await page.close();
  });
}

test('probe: serve lists a probe and shows it', async () => {
  const server = await Server.start(program, served);
  try {
    const page = await open_address(browser, server.address);
    const card = page.locator('#probes .card');
    assert.match(await card.innerText(), /deep/);
    assert.match(await card.innerText(), /3 layers × 32 on 248 tokens of ids\.txt/);
    assert.equal(await overflow(page), 0);
    await picture(page, 'served');
    await card.click();
    await page.locator('.strip').waitFor();
    assert.equal(await page.locator('.strip tbody tr').count(), 3);
    assert.deepEqual(page.errors, []);
    assert.ok(page.requests.every((url) => url.startsWith(server.address)));
    await page.close();
  } finally {
    assert.equal(await server.stop(), 0);
  }
});

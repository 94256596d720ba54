// The table of runs: filters, sorting, saving.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { open } from './browser.mjs';

export function table_tests(test, { browser, reports }) {
  const column = (page, index) => page.locator(`.rows .row > :nth-child(${index})`).allInnerTexts();
  const count = (page) => page.locator('.count').innerText();

  test('filters by words, comparisons and lists', async () => {
    const page = await open(browser(), reports.render('diverged'));
    const { runs } = reports.document('diverged');
    const small = runs.filter((run) => run.layers === 6 && run.params < 1e6).length;
    const query = page.getByLabel('Filter runs');
    await query.fill('layers=6 params<1M');
    assert.equal(await count(page), `${small} of 135 runs`);
    assert.deepEqual([...new Set(await column(page, 2))], ['6']);
    await query.fill('diverged');
    assert.equal(await count(page), '34 of 135 runs');
    await query.fill('no such thing');
    assert.match(await page.locator('.rows').innerText(), /No run matches/);
    await query.fill('');
    await page.getByLabel('Status').selectOption('diverged');
    assert.equal(await count(page), '34 of 135 runs');
    await page.getByLabel('Depth', { exact: true }).selectOption('24');
    const deep = runs.filter((run) => run.layers === 24 && run.status === 'diverged').length;
    assert.equal(await count(page), `${deep} of 135 runs`);
    await page.close();
  });

  test('sorts both ways, missing values last', async () => {
    const page = await open(browser(), reports.render('diverged'));
    const { runs } = reports.document('diverged');
    const losses = runs
      .map((run) => run.loss)
      .filter((loss) => loss !== null)
      .sort((a, b) => a - b);
    const head = page.locator('[data-column="loss"]');
    assert.equal(await head.getAttribute('aria-sort'), 'ascending');
    assert.equal((await column(page, 8))[0], losses[0].toFixed(4));
    await head.locator('button').click();
    assert.equal(await head.getAttribute('aria-sort'), 'descending');
    assert.equal((await column(page, 8))[0], losses[losses.length - 1].toFixed(4));
    await page.locator('.run-table').evaluate((table) => (table.scrollTop = table.scrollHeight));
    await page.waitForSelector('.rows .row[aria-rowindex="136"]');
    assert.equal((await column(page, 8)).pop(), '–');
    await page.locator('[data-column="width"] button').click();
    const widths = (await column(page, 3)).map((text) => Number(text.replace(',', '')));
    assert.deepEqual(
      widths,
      [...widths].sort((a, b) => a - b),
    );
    await page.close();
  });

  test('saves the filtered runs', async () => {
    const page = await open(browser(), reports.render('usual'));
    await page.getByLabel('Filter runs').fill('layers=24');
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.locator('.filters button').click(),
    ]);
    const lines = readFileSync(await download.path(), 'utf8')
      .trim()
      .split('\r\n');
    assert.equal(lines.length, 28);
    const loss = lines[0].split(',').indexOf('loss');
    const best = reports
      .document('usual')
      .runs.filter((r) => r.layers === 24)
      .sort((a, b) => a.loss - b.loss)[0];
    assert.equal(lines[1].split(',')[loss], String(best.loss));
    await page.close();
  });
}

// The lab's page, made by 'fathom lab run' and 'fathom lab report' from planted and real results.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Ajv from 'ajv';
import { document_of, open, overflow, show } from './browser.mjs';

const schema = JSON.parse(
  readFileSync(new URL('../schema/lab.schema.json', import.meta.url), 'utf8'),
);
const validate = new Ajv({ allErrors: true, strict: false }).compile(schema);

const chart_of = (page) => page.locator('#rank-collapse-chart-1');

/// Pages of directories, each made once.
class Labs {
  constructor(reports) {
    this.program = reports.program;
    this.folder = join(reports.folder, 'labs');
    this.pages = new Map();
    mkdirSync(this.folder, { recursive: true });
  }

  run(name, ...commands) {
    if (this.pages.has(name)) return this.pages.get(name);
    const folder = join(this.folder, name);
    for (const command of commands)
      execFileSync(this.program, ['lab', 'run', ...command, '--out', folder], { stdio: 'ignore' });
    return this.report(name, folder);
  }

  report(name, folder) {
    const page = join(this.folder, `${name}.html`);
    execFileSync(this.program, ['lab', 'report', folder, '-o', page]);
    const lab = { page, document: document_of(page), folder };
    this.pages.set(name, lab);
    return lab;
  }

  real() {
    return this.run(
      'real',
      ['rank-collapse', '--quick', '--seeds', '4'],
      ['corollary-1'],
      ['hard-attention', '--regex', '(ab)*', '--alphabet', 'ab', '--length', '5'],
    );
  }

  /// The real results with strings that try to become markup, and a chart with gaps.
  hostile() {
    if (this.pages.has('hostile')) return this.pages.get('hostile');
    const from = this.real().folder;
    const folder = join(this.folder, 'hostile');
    mkdirSync(join(folder, 'results'), { recursive: true });
    for (const name of readdirSync(join(from, 'results'))) {
      const result = JSON.parse(readFileSync(join(from, 'results', name), 'utf8'));
      delete result.checksum;  // edited by hand
      result.boundary = '<img src=x onerror="window.hacked=1">';
      result.notes = ['</script><script>window.hacked=1</script>'];
      for (const table of result.tables) table.rows[0][0] = '<b>bold</b>'.repeat(20);
      for (const chart of result.charts) {
        chart.log_y = true;
        chart.series[0].points = [
          { x: 1, y: null },
          { x: 2, y: -3 },
          { x: 3, y: 5, low: -1, high: 7 },
        ];
      }
      writeFileSync(join(folder, 'results', name), JSON.stringify(result));
    }
    return this.report('hostile', folder);
  }
}

function reading_tests(test, { browser, labs }) {
  test('the lab page: every claim, its verdict and its numbers', async () => {
    const { page: file, document } = labs().real();
    assert.equal(validate(document), true, JSON.stringify(validate.errors));
    const page = await open(browser(), file);
    assert.equal(await page.locator('.claim').count(), document.claims.length);
    assert.equal(await page.locator('.overview tbody tr').count(), document.claims.length);
    for (const claim of document.claims) {
      const article = page.locator(`#claim-${claim.id}`);
      const verdict = (claim.result ?? claim.finding).verdict;
      assert.equal(await article.locator('.claim-head .verdict').getAttribute('data-verdict'), verdict);
      const row = page.locator(`.overview tr[data-claim="${claim.id}"] .verdict`);
      assert.equal(await row.getAttribute('data-verdict'), verdict);
      const expected = claim.result?.criteria ?? [];
      const own = claim.questions.flatMap((question) => question.criteria);
      assert.equal(await article.locator('.criteria li').count(), expected.length + own.length);
    }
    const exponent = document.claims
      .find((claim) => claim.id === 'rank-collapse')
      .result.criteria.find((criterion) => criterion.id === 'exponent');
    const shown = page.locator('#claim-rank-collapse [data-criterion="exponent"] .measured');
    assert.equal(Number(await shown.innerText()), Number(exponent.measured.toPrecision(5)));
    const left = document.claims.filter((claim) => !claim.result).length;
    assert.equal(left, document.claims.length - 2);  // the expression was a custom question
    assert.match(
      await page.locator('header .cautions').innerText(),
      new RegExp(`${left} claims were not run here`),
    );
    assert.match(await page.locator('header .cautions').innerText(), /--quick/);
    assert.match(await page.locator('#claim-hard-attention').innerText(), /regex \(ab\)\*/);
    assert.match(await page.locator('#claim-admin').innerText(), /Not run here/);
    await page.close();
  });

  test('the lab page: every number it shows is one of the document', async () => {
    const { page: file, document } = labs().real();
    const page = await open(browser(), file);
    const verdict = (claim) => (claim.result ?? claim.finding).verdict;
    for (const name of ['holds', 'holds in part', 'fails', 'undecided']) {
      const fact = page.locator('.facts div', { has: page.locator(`dt:text-is("${name}")`) });
      const count = document.claims.filter((claim) => verdict(claim) === name).length;
      assert.equal(Number(await fact.locator('dd').innerText()), count, name);
    }
    const shown_number = (text) => Number(text.replace('−', '-').replace('e−', 'e-').replaceAll(',', ''));
    for (const claim of document.claims) {
      const results = [...(claim.result ? [claim.result] : []), ...claim.questions];
      const article = page.locator(`#claim-${claim.id}`);
      const criteria = results.flatMap((result) => result.criteria);
      const measured = await article.locator('.criteria .measured').allInnerTexts();
      assert.equal(measured.length, criteria.length);
      criteria.forEach((criterion, i) => {
        if (criterion.measured === null) return assert.equal(measured[i], 'not measured');
        const error = Math.abs(shown_number(measured[i]) - criterion.measured);
        assert.ok(error <= 5e-3 * Math.abs(criterion.measured), `${claim.id} ${criterion.id}`);
      });
      const cells = await article.locator('table.exhibit td').allInnerTexts();
      const tables = results.flatMap((result) => result.tables);
      assert.deepEqual(cells, tables.flatMap((table) => table.rows.flat()), claim.id);
    }
    await page.close();
  });

  for (const [name, options] of [
    ['1280 pixels', { viewport: { width: 1280, height: 900 } }],
    ['390 pixels', { viewport: { width: 390, height: 844 } }],
    ['dark', { colorScheme: 'dark' }],
  ]) {
    test(`the lab page at ${name}: no errors, no requests, nothing sticks out`, async () => {
      for (const lab of [labs().real(), labs().hostile()]) {
        const page = await open(browser(), lab.page, options);
        await show(page, 'rank-collapse-chart-1');
        assert.equal(await overflow(page), 0);
        // On a phone the links scroll; elsewhere every one is fully visible.
        const cut = await page.evaluate(() => {
          const bar = document.querySelector('.bar-links').getBoundingClientRect();
          const links = [...document.querySelectorAll('.bar-links a')];
          return links.filter((link) => link.getBoundingClientRect().right > bar.right + 1).length;
        });
        if (options.viewport?.width !== 390) assert.equal(cut, 0);
        assert.deepEqual(page.errors, []);
        assert.deepEqual(page.requests, [page.address]);
        assert.equal(await page.evaluate(() => window.hacked), undefined);
        assert.equal(await page.locator('#page img').count(), 0);
        await page.close();
      }
    });
  }
}

function using_tests(test, { browser, labs }) {
  test('the lab page: claims are filtered by verdict', async () => {
    const { page: file, document } = labs().real();
    const page = await open(browser(), file);
    await page.locator('#all .choice button', { hasText: 'fails' }).click();
    const failing = document.claims.filter((c) => (c.result ?? c.finding).verdict === 'fails');
    assert.equal(await page.locator('.overview tbody tr:visible').count(), failing.length);
    await page.locator('#all .choice button', { hasText: 'All' }).click();
    assert.equal(await page.locator('.overview tbody tr:visible').count(), document.claims.length);
    await page.close();
  });

  test('the lab page: lines are drawn, hidden and read off', async () => {
    const { page: file, document } = labs().real();
    const chart = document.claims.find((c) => c.id === 'rank-collapse').result.charts[0];
    const page = await open(browser(), file);
    await show(page, 'rank-collapse-chart-1');
    const lines = () => chart_of(page).locator('.series').count();
    assert.equal(await lines(), chart.series.length);
    await chart_of(page).locator('.chip').first().click();
    assert.equal(await lines(), chart.series.length - 1);
    await chart_of(page).locator('.chip').first().click();
    await chart_of(page).locator('svg').focus();
    await page.keyboard.press('ArrowRight');
    assert.match(await chart_of(page).locator('.tip').innerText(), new RegExp(chart.series[0].name));
    await page.close();
  });

  test('the lab page: a point stands where its number says', async () => {
    const { page: file, document } = labs().real();
    const [series] = document.claims.find((c) => c.id === 'rank-collapse').result.charts[0].series;
    const page = await open(browser(), file);
    await show(page, 'rank-collapse-chart-1');
    const drawn = await chart_of(page).evaluate((figure) => {
      const path = figure.querySelector('[data-series="0"] .line').getAttribute('d');
      const ticks = [...figure.querySelectorAll('.axes text')].map((text) => ({
        y: Number(text.getAttribute('y')) - 4,
        value: Number(text.textContent.replace('−', '-')),
        left: text.getAttribute('text-anchor') === 'end',
      }));
      return { path, ticks: ticks.filter((tick) => tick.left && Number.isFinite(tick.value)) };
    });
    const [a, b] = drawn.ticks;
    const value_at = (pixel) => a.value + ((pixel - a.y) * (b.value - a.value)) / (b.y - a.y);
    const pixels = drawn.path.match(/[\d.]+,[\d.]+/g).map((pair) => Number(pair.split(',')[1]));
    const range = Math.abs(series.points.at(-1).y);
    series.points.forEach((point, i) => {
      assert.ok(Math.abs(value_at(pixels[i]) - point.y) < 0.02 * range + 0.6, `point ${i}`);
    });
    await page.close();
  });

  test('the lab page: prints with its charts', async () => {
    const page = await open(browser(), labs().real().page, { colorScheme: 'dark' });
    await page.emulateMedia({ media: 'print' });
    await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
    await chart_of(page).locator('.stage > svg').waitFor();
    assert.equal(await page.locator('.bar').isVisible(), false);
    const paper = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    assert.equal(paper, 'rgb(255, 255, 255)');
    assert.deepEqual(page.errors, []);
    await page.close();
  });
}

export function lab_tests(test, { browser, reports }) {
  let made = null;
  const labs = () => (made ??= new Labs(reports));
  reading_tests(test, { browser, labs });
  using_tests(test, { browser, labs });
}

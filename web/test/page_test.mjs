// The page as a whole: it opens without errors or requests, whatever the document holds.
import assert from 'node:assert/strict';
import { kCharts, open, overflow, show } from './browser.mjs';

async function check_clean(page) {
  for (const id of kCharts) await show(page, id);
  assert.deepEqual(page.errors, []);
  const outside = page.requests.filter(
    (url) => url !== page.address && !url.startsWith('data:') && !url.startsWith('blob:'),
  );
  assert.deepEqual(outside, []);
  assert.equal(await overflow(page), 0, 'nothing sticks out sideways');
}

export function page_tests(test, { browser, reports }) {
  test('opens from file:// without errors or requests', async () => {
    const page = await open(browser(), reports.render('usual'));
    const document = reports.document('usual');
    assert.equal(await page.title(), document.title);
    assert.equal(await page.locator('h1').innerText(), document.title);
    assert.deepEqual(await page.locator('.answer p').allInnerTexts(), document.answer);
    assert.deepEqual(await page.locator('#law .cautions li').allInnerTexts(), [
      'Tokens do not vary apart from size.',
    ]);
    await check_clean(page);
    await page.close();
  });

  for (const name of ['no_fit', 'one_run', 'diverged', 'bare', 'hostile']) {
    for (const width of [1280, 400]) {
      test(`document '${name}' at ${width} pixels`, async () => {
        const page = await open(browser(), reports.render(name), {
          viewport: { width, height: 800 },
        });
        await check_clean(page);
        assert.equal(await page.evaluate(() => window.hacked), undefined);
        assert.equal(await page.locator('script').count(), 2);
        assert.equal(await page.locator('#page img').count(), 0);
        await page.close();
      });
    }
  }

  test('says what is missing', async () => {
    const page = await open(browser(), reports.render('bare'));
    assert.match(await page.locator('.answer').innerText(), /no run yet/);
    assert.match(await page.locator('#law').innerText(), /No law has been fitted/);
    assert.match(await page.locator('#runs').innerText(), /There are no runs yet/);
    await show(page, 'loss-by-size');
    assert.match(await page.locator('#loss-by-size .empty').textContent(), /No run has finished/);
    await page.close();
    const diverged = await open(browser(), reports.render('diverged'));
    assert.match(
      await diverged.locator('header .warning').innerText(),
      /34 runs without a usable loss: 34 diverged/,
    );
    await diverged.close();
  });

  test('hostile strings are shown as text', async () => {
    const page = await open(browser(), reports.render('hostile'));
    const { title, question, spec } = reports.document('hostile');
    assert.equal(await page.locator('h1').textContent(), title);
    assert.equal(await page.locator('.question').textContent(), question);
    assert.equal(await page.locator('.spec pre').textContent(), spec.toml);
    await page.close();
  });

  test('light and dark: by the system and by the switch', async () => {
    const ground = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const brightness = (colour) =>
      colour
        .match(/\d+/g)
        .slice(0, 3)
        .reduce((a, b) => a + Number(b), 0);
    const dark = await open(browser(), reports.render('usual'), { colorScheme: 'dark' });
    assert.ok(brightness(await ground(dark)) < 200);
    await dark.getByRole('button', { name: 'Switch to light' }).click();
    assert.ok(brightness(await ground(dark)) > 600);
    await dark.close();
    const light = await open(browser(), reports.render('usual'), { colorScheme: 'light' });
    const depth = () =>
      light.evaluate(() =>
        getComputedStyle(document.documentElement).getPropertyValue('--depth-0'),
      );
    const before = await depth();
    await light.getByRole('button', { name: 'Switch to dark' }).click();
    assert.ok(brightness(await ground(light)) < 200);
    assert.notEqual(await depth(), before);
    await light.close();
  });

  test('prints: every chart, the runs as a table, no controls', async () => {
    const page = await open(browser(), reports.render('usual'), { colorScheme: 'dark' });
    await page.emulateMedia({ media: 'print' });
    await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
    for (const id of kCharts) await page.locator(`#${id} .stage > svg`).waitFor();
    assert.equal(
      await page.locator('.printed-runs tbody tr').count(),
      reports.document('usual').runs.length,
    );
    assert.equal(await page.locator('.bar').isVisible(), false);
    assert.equal(await page.locator('.run-table').isVisible(), false);
    const paper = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    assert.equal(paper, 'rgb(255, 255, 255)');
    await page.evaluate(() => dispatchEvent(new Event('afterprint')));
    assert.equal(await page.locator('.printed-runs').count(), 0);
    // A real print fires both events by itself: seven charts and the table need several pages.
    const pdf = (await page.pdf({ format: 'A4' })).toString('latin1');
    assert.ok(pdf.match(/\/Type\s*\/Page\b/g).length >= 6);
    assert.deepEqual(page.errors, []);
    await page.close();
  });

  test('ten thousand runs open, scroll and filter', async () => {
    const page = await open(browser(), reports.render('large'));
    await check_clean(page);
    assert.equal(await page.locator('.count').innerText(), '10,000 runs');
    assert.ok((await page.locator('.rows .row').count()) < 60, 'only rows on screen exist');
    await page.locator('.run-table').evaluate((table) => (table.scrollTop = table.scrollHeight));
    await page.waitForSelector('.rows .row[aria-rowindex="10001"]');
    await page.getByLabel('Filter runs').fill('layers=12 seed=3');
    assert.equal(await page.locator('.count').innerText(), '100 of 10,000 runs');
    await page.close();
  });
}

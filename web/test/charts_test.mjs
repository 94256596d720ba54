// The charts: what they draw, and what the reader can do with them.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { kCharts, open, show } from './browser.mjs';

const tick_texts = (page, id) => page.locator(`#${id} .axes text`).allTextContents();

/// The file that a save button gives. Chromium takes a second for each download.
async function saved(page, id, kind) {
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.locator(`#${id} .save button`, { hasText: kind }).click(),
  ]);
  assert.equal(download.suggestedFilename(), `${id}.${kind.toLowerCase()}`);
  return readFileSync(await download.path());
}

/// The same bytes, taken as the page hands them to the browser.
async function handed_over(page, id, kind) {
  const bytes = await page.evaluate(
    async ([chart, name]) => {
      const blob = new Promise((resolve) => {
        HTMLAnchorElement.prototype.click = () => {};
        URL.createObjectURL = (given) => {
          resolve(given);
          return '#';
        };
      });
      const buttons = [...document.querySelectorAll(`#${chart} .save button`)];
      buttons.find((button) => button.textContent === name).click();
      return [...new Uint8Array(await (await blob).arrayBuffer())];
    },
    [id, kind],
  );
  return Buffer.from(bytes);
}

const parse_csv = (text) =>
  text
    .trim()
    .split('\r\n')
    .map((line) => line.split(','));

/// Mean, least and greatest loss of one shape.
function seeds_of(document, layers, width) {
  const losses = document.runs
    .filter((r) => r.layers === layers && r.width === width)
    .map((r) => r.loss);
  return [losses.reduce((a, b) => a + b) / losses.length, Math.min(...losses), Math.max(...losses)];
}

export function chart_tests(test, { browser, reports }) {
  test('every chart is drawn', async () => {
    const page = await open(browser(), reports.render('usual'));
    for (const id of kCharts) {
      await show(page, id);
      const marks = await page.locator(`#${id} svg`).evaluate(
        (svg) =>
          [...svg.querySelectorAll('g[clip-path] path, g[clip-path] rect')].filter((mark) => {
            const box = mark.getBBox();
            return box.width > 0 || box.height > 0;
          }).length,
      );
      assert.ok(marks >= 2, `${id} has ${marks} marks`);
    }
    assert.equal(await page.locator('#loss-by-size .series').count(), 5);
    assert.equal(await page.locator('#loss-by-size .band').count(), 5);
    assert.equal(await page.locator('#depth-width-map .tiles rect').count(), 45);
    assert.equal(await page.locator('#loss-curves .series').count(), 135);
    await page.close();
  });

  test('crossings stand at their size', async () => {
    const page = await open(browser(), reports.render('usual'));
    await show(page, 'loss-by-size');
    const expected = reports
      .document('usual')
      .fit.transitions.filter((t) => t.status === 'crossing');
    const found = await page.locator('#loss-by-size').evaluate((figure) => {
      const at = (name) =>
        Number(
          [...figure.querySelectorAll('.axes text')]
            .find((t) => t.textContent === name)
            .getAttribute('x'),
        );
      const rings = [...figure.querySelectorAll('.crossing circle')].map((c) =>
        Number(c.getAttribute('cx')),
      );
      return { rings, one: at('1M'), ten: at('10M') };
    });
    assert.equal(found.rings.length, expected.length);
    expected.forEach((transition, i) => {
      const x = found.one + Math.log10(transition.params / 1e6) * (found.ten - found.one);
      assert.ok(Math.abs(found.rings[i] - x) < 1.5, `${found.rings[i]} against ${x}`);
    });
    await show(page, 'transition-widths');
    assert.equal(
      await page.locator('#transition-widths .transition[data-status="below grid"]').count(),
      1,
    );
    await page.close();
  });

  test('labels are whole on a phone and lie over the lines', async () => {
    const page = await open(browser(), reports.render('usual'), {
      viewport: { width: 390, height: 844 },
    });
    for (const id of kCharts) {
      await show(page, id);
      const cut = await page.evaluate((chart) => {
        const svg = document.querySelector(`#${chart} .stage > svg`);
        const box = svg.getBoundingClientRect();
        return [...svg.querySelectorAll('text')]
          .filter((text) => {
            const own = text.getBoundingClientRect();
            return own.left < box.left - 1 || own.right > box.right + 1;
          })
          .map((text) => text.textContent);
      }, id);
      assert.deepEqual(cut, [], id);
    }
    await page.close();
    const wide = await open(browser(), reports.render('usual'));
    await show(wide, 'depth-width-map');
    // What is drawn later is on top.
    const above = await wide.evaluate(() => {
      const labels = document.querySelector('#depth-width-map .tile-labels');
      const lines = [...document.querySelectorAll('#depth-width-map .line')];
      const after = Node.DOCUMENT_POSITION_FOLLOWING;
      return lines.length > 0 && lines.every((line) => line.compareDocumentPosition(labels) & after);
    });
    assert.ok(above);
    await wide.close();
  });

  test('a run that stopped early counts like a finished one', async () => {
    const page = await open(browser(), reports.render('early_stopped'));
    await show(page, 'loss-by-size');
    const [, ...rows] = parse_csv((await handed_over(page, 'loss-by-size', 'CSV')).toString());
    assert.equal(rows.length, 45);
    assert.equal(await page.locator('header .warning').count(), 0);
    await page.close();
  });

  test('shapes are compared at their largest token budget', async () => {
    const page = await open(browser(), reports.render('two_budgets'));
    await show(page, 'loss-by-size');
    const [, ...rows] = parse_csv((await handed_over(page, 'loss-by-size', 'CSV')).toString());
    assert.equal(rows.length, 45);
    assert.deepEqual([...new Set(rows.map((row) => row[3]))], ['100000000']);
    assert.match(
      await page.locator('#loss .section-lead').innerText(),
      /135 runs with smaller ones/,
    );
    await page.close();
  });

  test('a toggled depth disappears everywhere and comes back', async () => {
    const page = await open(browser(), reports.render('usual'));
    for (const id of kCharts) await show(page, id);
    const chip = page.locator('.chip[data-depth="6"]').first();
    await chip.click();
    assert.equal(await chip.getAttribute('aria-pressed'), 'false');
    for (const id of ['loss-by-size', 'excess-by-size', 'speed', 'cost', 'loss-curves']) {
      await show(page, id);
      await page.locator(`#${id} .series[data-depth="6"]`).first().waitFor({ state: 'detached' });
      assert.ok((await page.locator(`#${id} .series[data-depth="12"]`).count()) > 0, id);
    }
    await show(page, 'depth-width-map');
    await page.locator('#depth-width-map .tiles').nth(4).waitFor({ state: 'detached' });
    assert.equal(await page.locator('#depth-width-map .tiles').count(), 4);
    assert.equal(await page.locator('.count').innerText(), '108 of 135 runs');
    await page.locator('.show-all').first().click();
    await page.locator('#loss-by-size .series').nth(4).waitFor();
    assert.equal(await page.locator('#loss-by-size .series').count(), 5);
    await chip.dblclick();
    await page.locator('#loss-by-size .series').nth(1).waitFor({ state: 'detached' });
    assert.equal(await page.locator('#loss-by-size .series').count(), 1);
    await page.close();
  });

  test('hover shows the nearest value', async () => {
    const page = await open(browser(), reports.render('usual'));
    await show(page, 'loss-by-size');
    const spot = await page
      .locator('#loss-by-size .series[data-depth="24"] .dots')
      .evaluate((path) => {
        const [, x, y] = path.getAttribute('d').match(/M([\d.]+) ([\d.]+)h0/);
        const box = path.ownerSVGElement.getBoundingClientRect();
        return [box.left + Number(x) + 2, box.top + Number(y) + 2];
      });
    await page.mouse.move(...spot);
    const run = reports.document('usual').runs.find((r) => r.layers === 24);
    const text = await page.locator('#loss-by-size .tip').innerText();
    assert.match(text, new RegExp(`24 layers × ${run.width} wide`));
    assert.ok(
      text.includes(seeds_of(reports.document('usual'), 24, run.width)[0].toFixed(4)),
      text,
    );
    await page.mouse.move(5, 5);
    assert.equal(await page.locator('#loss-by-size .tip').isVisible(), false);
    await page.close();
  });

  test('zoom by mouse and keyboard, and back', async () => {
    const page = await open(browser(), reports.render('usual'));
    await show(page, 'loss-by-size');
    const before = await tick_texts(page, 'loss-by-size');
    const box = await page.locator('#loss-by-size svg').boundingBox();
    await page.mouse.move(box.x + 300, box.y + 150);
    await page.mouse.down();
    await page.mouse.move(box.x + 500, box.y + 300, { steps: 4 });
    await page.mouse.up();
    assert.notDeepEqual(await tick_texts(page, 'loss-by-size'), before);
    await page.locator('#loss-by-size').getByText('Reset zoom').click();
    assert.deepEqual(await tick_texts(page, 'loss-by-size'), before);
    await page.locator('#loss-by-size svg').focus();
    await page.keyboard.press('+');
    assert.notDeepEqual(await tick_texts(page, 'loss-by-size'), before);
    await page.keyboard.press('0');
    assert.deepEqual(await tick_texts(page, 'loss-by-size'), before);
    await page.keyboard.press('ArrowRight');
    assert.match(await page.locator('#loss-by-size .tip').innerText(), /2 layers/);
    await page.close();
  });

  test('another measure is drawn on request', async () => {
    const page = await open(browser(), reports.render('usual'));
    await show(page, 'loss-by-size');
    await page.locator('#loss-by-size').getByText('Bits per byte', { exact: true }).click();
    const label = await page.locator('#loss-by-size .axes').textContent();
    assert.match(label, /bits per byte/);
    await page.close();
  });

  test('SVG, PNG and CSV hold what is drawn', async () => {
    const page = await open(browser(), reports.render('usual'));
    for (const id of kCharts) {
      await show(page, id);
      const svg = (await handed_over(page, id, 'SVG')).toString();
      const png = await handed_over(page, id, 'PNG');
      const numbers = await handed_over(page, id, 'CSV');
      assert.ok(svg.startsWith('<svg'), id);
      assert.ok(!svg.includes('var(--') && !svg.includes('transient'), `${id} stands alone`);
      assert.ok(svg.includes(await page.locator(`#${id} h3`).innerText()), id);
      assert.equal(png.subarray(1, 4).toString(), 'PNG');
      const width = Number(/width="(\d+)"/.exec(svg)[1]);
      assert.equal(png.readUInt32BE(16), 2 * width, `${id} at twice the size`);
      assert.ok(png.length > 5000, id);
      assert.ok(parse_csv(numbers.toString()).length > 1, id);
    }
    await page.close();
  });

  test('a picture is downloaded under its name', async () => {
    const page = await open(browser(), reports.render('usual'));
    await show(page, 'speed');
    assert.ok((await saved(page, 'speed', 'SVG')).toString().startsWith('<svg'));
    assert.equal((await saved(page, 'speed', 'PNG')).subarray(1, 4).toString(), 'PNG');
    await page.close();
  });

  test('the CSV of losses is the mean over seeds', async () => {
    const page = await open(browser(), reports.render('usual'));
    await show(page, 'loss-by-size');
    const [header, ...rows] = parse_csv((await saved(page, 'loss-by-size', 'CSV')).toString());
    assert.deepEqual(header, [
      'layers',
      'width',
      'params',
      'tokens',
      'seeds',
      'loss',
      'lowest',
      'highest',
    ]);
    assert.equal(rows.length, 45);
    for (const [layers, width, , , seeds, ...losses] of rows) {
      assert.equal(seeds, '3');
      const expected = seeds_of(reports.document('usual'), Number(layers), Number(width));
      losses.forEach((loss, i) => assert.ok(Math.abs(Number(loss) - expected[i]) < 1e-12));
    }
    await page.close();
  });
}

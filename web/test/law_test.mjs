// The law as it is drawn: the band is read from the page and checked against the formula.
//
//   ln d = a + b L,   error^2 = a_error^2 + (L b_error)^2 + 2 L correlation a_error b_error
import assert from 'node:assert/strict';
import { kCharts, open, show } from './browser.mjs';
import { assert_valid } from './schema_test.mjs';

/// What the chart of transition widths shows: ticks of both axes and the outline of a law's band.
const read_chart = (page, law) =>
  page.locator('#transition-widths').evaluate((figure, name) => {
    const kSuffix = { K: 1e3, M: 1e6 };
    const value = (label) => parseFloat(label) * (kSuffix[label.at(-1)] ?? 1);
    const ticks = (anchor, place) =>
      [...figure.querySelectorAll(`.axes text[text-anchor="${anchor}"]`)]
        .filter((text) => /^[\d.]+[KM]?$/.test(text.textContent))
        .map((text) => [value(text.textContent), Number(text.getAttribute(place))]);
    const band = figure.querySelector(`.law[data-law="${name}"] .band`).getAttribute('d');
    return {
      x: ticks('middle', 'x'),
      y: ticks('end', 'y').map(([at, pixel]) => [at, pixel - 4]), // a label is below its line
      outline: [...band.matchAll(/(-?[\d.]+),(-?[\d.]+)/g)].map((pair) => pair.slice(1).map(Number)),
    };
  }, law);

/// The straight line through the outer ticks, from pixels to values.
function pixels_to_values(ticks, scale) {
  const [[v0, p0], [v1, p1]] = [ticks[0], ticks.at(-1)];
  return (pixel) => scale(v0) + ((pixel - p0) / (p1 - p0)) * (scale(v1) - scale(v0));
}

/// Depth, lower and upper end of ln d along the band.
function read_band({ x, y, outline }) {
  const depth = pixels_to_values(x, (value) => value);
  const log_width = pixels_to_values(y, Math.log);
  const half = outline.length / 2;
  const lower = outline.slice(half).reverse();
  return outline.slice(0, half).map(([at, top], i) => {
    assert.equal(at, lower[i][0]);
    return [depth(at), log_width(lower[i][1]), log_width(top)];
  });
}

const error_at = (law, depth) =>
  Math.sqrt(
    law.a_error ** 2 +
      (depth * law.b_error) ** 2 +
      2 * depth * (law.correlation ?? 0) * law.a_error * law.b_error,
  );

/// Ticks lie on whole pixels, so a value read from them is off by about a pixel.
async function assert_band(page, law, name = 'this study') {
  await show(page, 'transition-widths');
  const chart = await read_chart(page, name);
  const band = read_band(chart);
  assert.ok(band.length > 50);
  const [[v0, p0], [v1, p1]] = [chart.y[0], chart.y.at(-1)];
  const pixel = Math.abs(Math.log(v1 / v0) / (p1 - p0));
  for (const [depth, low, high] of band) {
    const middle = law.a + law.b * depth;
    const error = error_at(law, depth);
    assert.ok(Math.abs(low - (middle - error)) < 2.5 * pixel, `below at ${depth}: ${low}`);
    assert.ok(Math.abs(high - (middle + error)) < 2.5 * pixel, `above at ${depth}: ${high}`);
  }
  return pixel;
}

const note = (page) => page.locator('#transition-widths figcaption').innerText();

export function law_tests(test, { browser, reports }) {
  test('the band of a law with correlation -0.98 is drawn with its covariance', async () => {
    const page = await open(browser(), reports.render('correlated'));
    const { law } = reports.document('correlated').fit;
    const pixel = await assert_band(page, law);
    // By hand at 3 layers: 0.073984 + 0.048224 - 0.117064 = 0.005144, whose root is 0.0717;
    // independent errors would give 0.3496.
    assert.ok(Math.abs(error_at(law, 3) - 0.0717) < 5e-4);
    assert.ok(0.3496 - 0.0717 > 20 * pixel, 'the picture tells one from the other');
    assert.match(await note(page), /unknown for published \(Levine 2020\) and taken as zero/);
    assert.deepEqual(
      await page.locator('.side-tables tbody th').evaluateAll((cells) =>
        cells.slice(0, 2).map((cell) => cell.textContent),
      ),
      ['this study', 'published (Levine 2020)'],
    );
    await page.close();
  });

  test('without a correlation the errors are independent, and the page says so', async () => {
    const page = await open(browser(), reports.render('independent'));
    await assert_band(page, reports.document('independent').fit.law);
    assert.match(await note(page), /unknown for this study and published/);
    await page.close();
  });

  test('a document that the program wrote from run folders is drawn as it says', async () => {
    const { document, page: file } = reports.study('quiet');
    assert_valid(document);
    const { law } = document.fit;
    assert.ok(law.correlation < -0.5 && law.correlation > -1, `correlation ${law.correlation}`);
    const page = await open(browser(), file);
    for (const id of kCharts) await show(page, id);
    await assert_band(page, law);
    await assert_band(page, document.published, 'published');
    assert.equal(await page.locator('.count').innerText(), `${document.runs.length} runs`);
    assert.deepEqual(await page.locator('.answer p').allInnerTexts(), document.answer);
    const cells = await page.locator('.side-tables tbody tr').first().locator('td').allInnerTexts();
    assert.deepEqual(cells, [
      `${law.a.toFixed(3)} ± ${law.a_error.toFixed(3)}`,
      `${law.b.toFixed(4)} ± ${law.b_error.toFixed(4)}`,
      String(law.points.length),
    ]);
    assert.deepEqual(page.errors, []);
    await page.close();
  });
}

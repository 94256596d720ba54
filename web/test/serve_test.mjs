// 'fathom serve' in a browser: the overview, a study that grows while the page is open, the map with
// the live planner.
import assert from 'node:assert/strict';
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { open_address, overflow, Server, show, write_study } from './browser.mjs';

/// A study with its finished runs, one of which has lost its record again, as if it were training.
function half_done(reports) {
  const root = join(reports.folder, 'served');
  const folder = join(root, 'growing');
  const document = reports.document('quiet');
  write_study(folder, document);
  const [last] = document.runs.filter((run) => run.status === 'finished').slice(-1);
  const run = join(folder, 'runs', last.id);
  const record = readFileSync(join(run, 'record.json'), 'utf8');
  writeFileSync(join(run, 'record.json'), '');
  return { root, run, record, id: last.id };
}

export function serve_tests(test, { browser, reports }) {
  let server = null;
  let study = null;
  const running = async () => {
    if (!server) {
      study = half_done(reports);
      mkdirSync(join(study.root, 'empty'), { recursive: true });
      server = await Server.start(reports.program, study.root);
    }
    return server;
  };

  for (const [name, options] of [
    ['desktop', {}],
    ['phone', { viewport: { width: 390, height: 844 }, hasTouch: true }],
    ['dark', { colorScheme: 'dark' }],
  ]) {
    test(`serve: the overview on ${name} lists the study and leads to it`, async () => {
      const { address } = await running();
      const page = await open_address(browser(), address, options);
      await page.locator('.card .live-state').first().waitFor();
      assert.match(await page.locator('.card').first().innerText(), /of \d+ runs done/);
      assert.equal(await overflow(page), 0);
      await page.locator('.card').first().click();
      await page.locator('.live-panel').waitFor();
      assert.equal(await overflow(page), 0);
      assert.deepEqual(page.errors, []);
      assert.ok(page.requests.every((url) => url.startsWith(address)));
      await page.close();
    });
  }

  test('serve: curves and states grow while a run trains', async () => {
    const served = await running();
    const page = await open_address(browser(), served.page('/study/growing'));
    await show(page, 'loss-curves');
    const line = (text) => page.locator('.live-state', { hasText: text });
    await line(/done/).waitFor();
    const done = Number((await page.locator('.live-state').innerText()).match(/^(\d+)/)[1]);
    const finished = () => page.locator('.facts dd').first().innerText();
    assert.equal(Number(await finished()), done);
    // The run ends: its record is there again.
    appendFileSync(join(study.run, 'metrics.jsonl'), '{"step":1000,"eval_loss":2.0}\n');
    writeFileSync(join(study.run, 'record.json'), study.record);
    await line(new RegExp(`^${done + 1} of`)).waitFor({ timeout: 90_000 });
    await page.waitForFunction(
      (wanted) => document.querySelector('.facts dd').textContent === String(wanted),
      done + 1,
    );
    assert.deepEqual(page.errors, []);
    await page.close();
  });

  test('serve: the map plans for the words that are typed, and asks for rows it lacks', async () => {
    const served = await running();
    const page = await open_address(browser(), served.address);
    await page.locator('.planner input').fill('350M --vocab 32000 --max-depth 40');
    await page.locator('.planner button').click();
    await page.locator('#map .stage > svg').waitFor();
    const words = () => page.locator('.command code').textContent();
    assert.equal(
      await words(),
      'fathom plan 350M --vocab 32000 --max-depth 40 --hardware h200',
    );
    await page.locator('#tokens').focus();
    await page.keyboard.press('End');
    // The number of tokens is known once the row has come.
    await page.locator('.slider-value', { hasText: '700B tokens' }).waitFor();
    assert.match(await page.locator('.answer .lead').textContent(), /^Take/);
    assert.match(await words(), /--tokens-per-parameter 2000/);
    assert.deepEqual(page.errors, []);
    await page.close();
  });

  test('serve: a wrong plan says so in one line', async () => {
    const served = await running();
    const reply = await fetch(served.page('/map?plan=350M+--vocabb+5'));
    assert.equal(reply.status, 400);
    assert.match(await reply.text(), /^unknown option '--vocabb'.*\n$/);
  });

  test('serve: ends on Ctrl-C with exit code 0', async () => {
    const served = await running();
    assert.equal(await served.stop(), 0);
  });
}

// The map of shapes, made by 'fathom plan --html'. What the page shows at the sliders' stops is
// compared with what the program prints for the same budget.
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import Ajv from 'ajv';
import { document_of, open, overflow, show, write_study } from './browser.mjs';

const schema = JSON.parse(
  readFileSync(new URL('../schema/map.schema.json', import.meta.url), 'utf8'),
);
const validate = new Ajv({ allErrors: true, strict: false }).compile(schema);
const run = promisify(execFile);

const kPlans = 140;
const kOptionPlans = 10;
const kModels = 25;
const kTiles = 25;

const reports_folder = (maps) => dirname(maps.file);

/// A small generator with a fixed seed: the same random points in every run.
function random_from(seed) {
  let state = seed;
  return (count) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * count);
  };
}

const close = (actual, expected, what) =>
  assert.ok(
    Math.abs(actual - expected) <= 1e-5 * Math.abs(expected) + 1e-9,
    `${what}: ${actual} is not ${expected}`,
  );

class Maps {
  constructor(reports) {
    this.program = reports.program;
    this.file = join(reports.folder, 'map.html');
    this.quiet = reports.document('quiet');
  }

  get page() {
    if (!this.made) {
      execFileSync(this.program, ['plan', '7B', '--html', this.file], { stdio: 'ignore' });
      this.made = true;
    }
    return this.file;
  }

  async json(...command) {
    const { stdout } = await run(this.program, [...command, '--json'], { maxBuffer: 1 << 24 });
    return JSON.parse(stdout);
  }
}

/// Moves the page to a stop as a reader would and returns the texts that it shows.
async function shown_at(page, { count, budget, tokens, device }) {
  return page.evaluate(
    ([count, budget, tokens, device]) => {
      const slide = (id, value, kind) => {
        const input = document.getElementById(id);
        input.value = String(value);
        input.dispatchEvent(new Event(kind, { bubbles: true }));
      };
      document.querySelector(`.controls [data-value=${count}]`).click();
      slide('budget', budget, 'input');
      slide('tokens', tokens, 'input');
      slide('hardware', device, 'change');
      const facts = Object.fromEntries(
        [...document.querySelectorAll('[data-fact]')].map((e) => [e.dataset.fact, e.textContent]),
      );
      const rows = [...document.querySelectorAll('#numbers table')[0].tBodies[0].rows];
      return {
        facts,
        lead: document.querySelector('.answer .lead').textContent,
        command: document.querySelector('.command code').textContent,
        laws: rows.map((row) => [...row.cells].map((cell) => cell.textContent)),
      };
    },
    [count, budget, tokens, device],
  );
}

const number = (text) => Number(text.replaceAll(',', ''));

/// Every number on the page against the program's own.
function compare_plan(shown, plan, what) {
  const pick = plan.recommendation;
  assert.equal(number(shown.facts.shape.split(' × ')[0]), pick.layers, what);
  assert.equal(number(shown.facts.shape.split(' × ')[1]), pick.width, what);
  assert.equal(number(shown.facts.counted), pick.params, what);
  assert.match(shown.lead, new RegExp(`: ${pick.heads} heads? of ${pick.head_size}`), what);
  assert.equal(number(shown.lead.match(/ffn ([\d,]+)/)[1]), pick.ffn, what);
  const hours = pick.train_seconds / 3600;
  const times = [60 * hours, hours, hours / 8766].map((value) => Number(value.toPrecision(3)));
  const shown_time = number(shown.facts.train);
  assert.ok(times.some((value) => Math.abs(value - shown_time) <= 0.006 * value), `${what} training`);
  const [latency, unit] = shown.facts.decode.split(' ');
  const expected = pick.decode_seconds_per_token * (unit === 'ms' ? 1e3 : 1e6);
  assert.ok(Math.abs(number(latency) - expected) <= Math.max(0.5, 0.0051 * expected), `${what} decoding`);
  plan.laws.forEach((law, i) => {
    const [title, layers, width, mark] = shown.laws[i];
    assert.equal(title, law.title);
    assert.ok(Math.abs(number(layers) - law.layers) <= 0.0501 + 1e-5 * law.layers, `${what} ${title}`);
    assert.ok(Math.abs(number(width) - law.width) <= 0.51 + 1e-5 * law.width, `${what} ${title}`);
    assert.equal(mark, law.evidence, `${what} ${title}`);
  });
  assert.ok(Math.abs(number(shown.laws.at(-1)[1]) - plan.unrounded.layers) <= 0.051, what);
}

/// Numbers that are drawn rather than written.
function compare_drawn(stop, plan, what) {
  close(stop.band[0], plan.band.edges[0], `${what} band`);
  close(stop.band[1], plan.band.edges[1], `${what} band`);
  assert.deepEqual(stop.equals, plan.verdict.equals, `${what} equals`);
  assert.equal(stop.equals_evidence, plan.verdict.equals_evidence, what);
  assert.equal(stop.evidence, plan.unrounded.evidence, what);
  close(stop.parameters, plan.budget.parameters, `${what} parameters`);
  close(stop.tokens, plan.budget.tokens, `${what} tokens`);
  close(stop.flops, plan.recommendation.train_flops, `${what} FLOPs`);
  close(stop.penalty, plan.recommendation.loss_penalty, `${what} penalty`);
}

function number_tests(test, { browser, maps }) {
  test(`the map says what 'fathom plan' says at ${kPlans} random stops`, async () => {
    const file = maps().page;
    const map = document_of(file);
    const page = await open(browser(), file);
    const random = random_from(12);
    for (let i = 0; i < kPlans; ++i) {
      const count = random(3) === 0 ? 'flops' : 'parameters';
      const table = map[`by_${count}`];
      const point = {
        count,
        budget: random(table.stops.length),
        tokens: random(map.tokens_per_parameter.length),
        device: random(map.hardware.length),
      };
      const shown = await shown_at(page, point);
      const [, ...command] = shown.command.split(' ');
      const plan = await maps().json(...command);
      compare_plan(shown, plan, shown.command);
      compare_drawn(table.plans[point.tokens][point.budget], plan, shown.command);
    }
    await page.close();
  });

  test('the command on the map carries the options that the map was made with', async () => {
    const file = join(reports_folder(maps()), 'options.html');
    const options = ['--vocab', '32000', '--kv-group', '4', '--total', '--style', 'gpt2'];
    execFileSync(maps().program, ['plan', '1.3B', ...options, '--html', file], { stdio: 'ignore' });
    const page = await open(browser(), file);
    const map = document_of(file);
    const random = random_from(56);
    for (let i = 0; i < kOptionPlans; ++i) {
      const point = {
        count: 'parameters',
        budget: random(map.by_parameters.stops.length),
        tokens: random(map.tokens_per_parameter.length),
        device: random(map.hardware.length),
      };
      const shown = await shown_at(page, point);
      assert.ok(shown.command.includes(' --total --style gpt2 --vocab 32000 --kv-group 4 '));
      const plan = await maps().json(...shown.command.split(' ').slice(1));
      compare_plan(shown, plan, shown.command);
    }
    await page.close();
  });

  test(`dots and tiles say what 'fathom shape' says`, async () => {
    const map = document_of(maps().page);
    const random = random_from(34);
    for (let i = 0; i < kModels; ++i) {
      const model = map.models[random(map.models.length)];
      const device = random(map.hardware.length);
      const shape = await maps().json('shape', model.name, '--hardware', map.hardware[device].name);
      assert.equal(shape.parameters.total, model.total);
      assert.equal(shape.parameters.non_embedding, model.non_embedding);
      assert.deepEqual([shape.shape.layers, shape.shape.width], [model.layers, model.width]);
      close(model.laws_layers, shape.consensus.layers, model.name);
      close(model.penalty, shape.consensus.loss_penalty, model.name);
      assert.equal(model.evidence, shape.consensus.evidence);
      close(model.decode_seconds[device], shape.times.decode_seconds_per_token, model.name);
      const per_token = shape.times.step_seconds / shape.times.step_tokens;
      close(model.train_seconds_per_token[device], per_token, model.name);
    }
    const { field } = map;
    for (let i = 0; i < kTiles; ++i) {
      const [row, column, device] = [field.layers, field.width, map.hardware].map((list) =>
        random(list.length),
      );
      const name = `${field.layers[row]}x${field.width[column]}`;
      const profile = map.hardware[device].name;
      const { times } = await maps().json('shape', name, '--gated', '--hardware', profile);
      const at = row * field.width.length + column;
      close(field.decode_seconds[device][at], times.decode_seconds_per_token, name);
      const per_token = times.step_seconds / times.step_tokens;
      close(field.train_seconds_per_token[device][at], per_token, name);
    }
  });
}

function page_tests(test, { browser, maps }) {
  test('the map follows its schema and stays under 1 MB', () => {
    assert.equal(validate(document_of(maps().page)), true, JSON.stringify(validate.errors));
    assert.ok(statSync(maps().page).size < 1e6);
  });

  for (const [name, options] of [
    ['1280 pixels', { viewport: { width: 1280, height: 900 } }],
    ['390 pixels', { viewport: { width: 390, height: 844 }, hasTouch: true }],
    ['dark', { colorScheme: 'dark' }],
  ]) {
    test(`the map at ${name}: no errors, no requests, nothing sticks out`, async () => {
      const page = await open(browser(), maps().page, options);
      await show(page, 'map');
      for (const colouring of ['train', 'decode', 'none']) {
        await page.locator(`#map [data-value=${colouring}]`).click();
        const tiles = await page.locator('#map .field rect').count();
        assert.equal(tiles > 0, colouring !== 'none');
        assert.equal(await overflow(page), 0);
      }
      assert.deepEqual(page.errors, []);
      assert.deepEqual(page.requests, [page.address]);
      await page.close();
    });
  }

  test('the map: sliders, laws and dots answer to the keyboard', async () => {
    const map = document_of(maps().page);
    const page = await open(browser(), maps().page);
    await show(page, 'map');
    const lead = () => page.locator('.answer .lead').innerText();
    const before = await lead();
    await page.locator('#budget').focus();
    await page.keyboard.press('End');
    assert.notEqual(await lead(), before);
    assert.equal(await page.locator('#budget').getAttribute('aria-valuetext'), '1T');
    const curves = () => page.locator('#map svg[role=img] .line').count();
    const drawn = await curves();
    await page.locator('.chip', { hasText: 'Levine' }).click();
    assert.ok((await curves()) < drawn);
    await page.locator('#map svg[role=img]').focus();
    await page.keyboard.press('ArrowRight');
    assert.match(await page.locator('#map .tip').innerText(), /The pick/);
    await page.keyboard.press('ArrowRight');
    assert.match(await page.locator('#map .tip').innerText(), new RegExp(map.models[0].name));
    assert.match(await page.locator('#map .tip').innerText(), /, 20\d\d/);
    await page.close();
  });

  test('the map: a tap on a dot opens its card and leaves it open', async () => {
    const page = await open(browser(), maps().page, {
      viewport: { width: 390, height: 844 },
      hasTouch: true,
    });
    await show(page, 'map');
    await page.locator('#map circle[data-name="PaLM-540B"]').scrollIntoViewIfNeeded();
    await page.locator('#map circle[data-name="PaLM-540B"]').tap({ force: true });
    assert.match(await page.locator('#map .tip').innerText(), /PaLM-540B/);
    await page.close();
  });

  test('the map: studies and points of one\u2019s own lie over it', async () => {
    const folder = join(reports_folder(maps()), 'over');
    write_study(folder, maps().quiet);
    const points = join(reports_folder(maps()), 'probes.csv');
    writeFileSync(points, 'name,layers,width,effective depth\nmine,9,777,4.5\n');
    const file = join(reports_folder(maps()), 'overlay.html');
    const overlays = ['--overlay', folder, '--overlay', points];
    execFileSync(maps().program, ['plan', '10M', ...overlays, '--html', file], { stdio: 'ignore' });
    assert.equal(validate(document_of(file)), true, JSON.stringify(validate.errors));
    const page = await open(browser(), file);
    await show(page, 'map');
    const finished = maps().quiet.runs.filter((run) => run.status === 'finished').length;
    assert.equal(await page.locator('#map circle.overlay').count(), finished + 1);
    await page.locator('#map circle.overlay').last().hover({ force: true });
    assert.match(await page.locator('#map .tip').innerText(), /mine: 9 × 777\s+effective depth\s+4.5/);
    assert.deepEqual(page.errors, []);
    await page.close();
  });

  test('the map prints with its chart, on white', async () => {
    const page = await open(browser(), maps().page, { colorScheme: 'dark' });
    await page.emulateMedia({ media: 'print' });
    await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
    await page.locator('#map .stage > svg').waitFor();
    assert.equal(await page.locator('#budget').isVisible(), false);
    const paper = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    assert.equal(paper, 'rgb(255, 255, 255)');
    await page.close();
  });
}

export function map_tests(test, { browser, reports }) {
  let made = null;
  const maps = () => (made ??= new Maps(reports));
  page_tests(test, { browser, maps });
  number_tests(test, { browser, maps });
}

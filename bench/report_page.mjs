// How fast the report of 10,000 runs opens and answers in Chromium (headless, software drawing).
//
//   FATHOM=build/release/fathom node bench/report_page.mjs
//
// ready      from navigation until script has run, first chart is drawn and the page is idle
// frames     time between frames while the page or the table scrolls, or the pointer moves over the
//            chart with most points; 16.7 ms is the screen's own interval
// answers    from the click to the next frame
import { statSync } from 'node:fs';
import { launch, open, Reports, show, kCharts } from '../web/test/browser.mjs';

const kOpenings = 5;
const ms = (value) => `${value.toFixed(1).padStart(8)} ms`;
const quantile = (values, share) =>
  [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(share * values.length))];

async function ready_time(page) {
  return page.evaluate(() => performance.getEntriesByName('fathom-ready')[0].startTime);
}

/// Runs `step(i)` in every frame and returns the times between frames.
const frames = (page, count, step) =>
  page.evaluate(
    async ([total, source]) => {
      const act = new Function('i', 'total', source);
      const times = [];
      let last = await new Promise(requestAnimationFrame);
      for (let i = 0; i < total; ++i) {
        act(i, total);
        const now = await new Promise(requestAnimationFrame);
        times.push(now - last);
        last = now;
      }
      return times;
    },
    [count, step],
  );

/// From a click to the next frame.
const answer = (page, selector) =>
  page.evaluate(async (wanted) => {
    const start = performance.now();
    document.querySelector(wanted).click();
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    return performance.now() - start;
  }, selector);

const print = (name, ...parts) => console.log(name.padEnd(34), ...parts);

function print_frames(name, times) {
  const [middle, slow] = [quantile(times, 0.5), quantile(times, 0.95)];
  print(name, `median${ms(middle)}   95 %${ms(slow)}   worst${ms(Math.max(...times))}`);
}

const reports = new Reports(process.env.FATHOM ?? 'build/release/fathom');
const browser = await launch();
try {
  const start = performance.now();
  const file = reports.render('large');
  const document = reports.document('large');
  console.log(
    `Chromium ${browser.version()}, ${document.runs.length} runs, ${document.curves.length} curves`,
  );
  const size = (statSync(file).size / 1e6).toFixed(1);
  console.log(`page file ${size} MB, written in ${ms(performance.now() - start)}`);

  const times = [];
  for (let i = 0; i < kOpenings; ++i) {
    const page = await open(browser, file);
    times.push(await ready_time(page));
    await page.close();
  }
  const middle = ms(quantile(times, 0.5));
  print('ready', `median${middle}   worst${ms(Math.max(...times))}   (goal 2000 ms)`);

  const page = await open(browser, file);
  const scroll = await frames(
    page,
    120,
    'window.scrollTo({ top: (i / total) * document.body.scrollHeight, behavior: "instant" })',
  );
  print_frames('frames, page scrolled first time', scroll);
  for (const id of kCharts) await show(page, id);
  print_frames(
    'frames, table scrolled',
    await frames(
      page,
      120,
      'const t = document.querySelector(".run-table"); t.scrollTop = (i / total) * t.scrollHeight',
    ),
  );
  await show(page, 'cost');
  print_frames(
    'frames, pointer over 10,000 dots',
    await frames(
      page,
      120,
      'const s = document.querySelector("#cost svg"); const b = s.getBoundingClientRect();' +
        's.dispatchEvent(new PointerEvent("pointermove", {' +
        ' clientX: b.left + 60 + (i / total) * (b.width - 80),' +
        ' clientY: b.top + 60 + (i / total) * (b.height - 140), bubbles: true }))',
    ),
  );
  print('answer, depth toggled', '      ', ms(await answer(page, '.chip[data-depth="12"]')));
  print('answer, table sorted', '      ', ms(await answer(page, '[data-column="params"] button')));
  print(
    'answer, chart measure changed',
    '      ',
    ms(await answer(page, '#cost [data-value="seconds"]')),
  );
} finally {
  await browser.close();
  reports.remove();
}

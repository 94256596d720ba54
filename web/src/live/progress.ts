// A study at this moment: how far it is, what trains, what waits, how long it will take.
import { h } from '../dom';
import { duration, fixed, plural, whole } from '../format';
import type { RunningRun, StudyState } from '../generated/serve_schema';

const kMostBars = 8;

export function state_line(state: StudyState): string {
  const parts = [`${whole(state.done)} of ${plural(state.runs, 'run')} done`];
  if (state.running.length > 0) parts.push(`${state.running.length} training`);
  if (state.failed > 0) parts.push(`${state.failed} failed`);
  if (state.left_seconds !== null) parts.push(`about ${duration(state.left_seconds)} left`);
  else if (state.running.length > 0) parts.push('time left not known yet');
  else if (state.waiting > 0) parts.push(state.by ? 'preparing' : 'no process is running it');
  return parts.join(', ');
}

/// A bar that is as full as the study is done; parts of running runs count.
export function study_bar(state: StudyState): HTMLElement {
  const parts = state.running.map((run) => (run.steps > 0 ? run.step / run.steps : 0));
  const share = (state.done + parts.reduce((a, b) => a + b, 0)) / Math.max(1, state.runs);
  return bar(share, `${state.done} of ${state.runs} runs done`);
}

function bar(share: number, name: string): HTMLElement {
  const percent = Math.round(100 * Math.min(1, share));
  return h(
    'div',
    {
      class: 'progress',
      role: 'progressbar',
      'aria-label': name,
      'aria-valuenow': percent,
      'aria-valuemin': 0,
      'aria-valuemax': 100,
    },
    h('div', { style: `width:${(100 * Math.min(1, share)).toFixed(1)}%` }),
  );
}

function running_row(run: RunningRun): HTMLElement {
  return h(
    'li',
    {},
    h('span', { class: 'running-name' }, run.name),
    bar(run.steps > 0 ? run.step / run.steps : 0, run.name),
    h(
      'span',
      { class: 'running-step' },
      `step ${whole(run.step)} of ${whole(run.steps)}`,
      run.loss === null ? '' : `, loss ${fixed(run.loss, 3)}`,
    ),
  );
}

/// Everything about the current state, for the top of a study's page.
export function progress_panel(state: StudyState): HTMLElement {
  const more = state.running.length - kMostBars;
  const waiting = state.waiting - state.next.length;
  return h(
    'div',
    { class: 'live-panel' },
    h('p', { class: 'live-state', role: 'status' }, `${state_line(state)}.`),
    study_bar(state),
    state.running.length > 0
      ? h('ul', { class: 'running' }, ...state.running.slice(0, kMostBars).map(running_row))
      : null,
    more > 0 ? h('p', { class: 'quiet' }, `and ${plural(more, 'more run')} training`) : null,
    state.next.length > 0
      ? h(
          'p',
          { class: 'quiet queue' },
          `Waiting: ${state.next.join('; ')}`,
          waiting > 0 ? ` and ${whole(waiting)} more.` : '.',
        )
      : null,
    state.by ? h('p', { class: 'quiet' }, `Trained by ${state.by}.`) : null,
  );
}

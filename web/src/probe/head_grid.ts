// Heads as a grid: a row per layer, a cell per head, coloured by role.
import type { Head, ProbeDocument } from '../generated/probe_schema';
import { h } from '../dom';
import { fixed } from '../format';

const kRoles = ['previous', 'induction', 'duplicate', 'sink', 'local', 'broad', 'mixed'];

function describe(head: Head): string {
  const scores = Object.entries(head.scores)
    .map(([name, value]) => `${name} ${fixed(value, 2)}`)
    .join(', ');
  const cost = head.removal === null ? '' : `; removing it costs ${fixed(head.removal.mean, 4)} nats`;
  return `layer ${head.layer}, head ${head.head}: ${head.role} (${scores}); writes ${fixed(head.contribution, 3)} of the stream${cost}`;
}

function cell(head: Head, most: number): HTMLElement {
  const size = Math.round((100 * (head.contribution ?? 0)) / most);
  return h(
    'td',
    { class: `head role-${head.role}`, title: describe(head) },
    h('span', { class: 'wrote', style: `height:${Math.max(4, size)}%` }),
  );
}

export function head_grid(probe: ProbeDocument): HTMLElement {
  const most = Math.max(1e-9, ...probe.heads.map((head) => head.contribution ?? 0));
  const present = kRoles.filter((role) => probe.heads.some((head) => head.role === role));
  const legend = present.map((role) => {
    const count = probe.heads.filter((head) => head.role === role).length;
    const together = probe.role_removals.find((each) => each.role === role)?.removal;
    const cost = together ? ` (all removed: ${fixed(together.mean, 3)} nats)` : '';
    return h('span', { class: `key role-${role}` }, h('i', {}), `${role} ${count}${cost}`);
  });
  const rows = probe.layers.map((layer) =>
    h(
      'tr',
      {},
      h('th', { scope: 'row' }, String(layer.layer)),
      ...probe.heads.filter((head) => head.layer === layer.layer).map((head) => cell(head, most)),
    ),
  );
  return h(
    'div',
    {},
    h('div', { class: 'head-legend' }, ...legend),
    h(
      'div',
      { class: 'table-scroll', tabindex: 0, role: 'region', 'aria-label': 'Heads' },
      h('table', { class: 'head-grid' }, h('tbody', {}, ...rows)),
    ),
  );
}

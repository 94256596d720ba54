// A section of a page: heading, an optional lead, content.
import { h } from '../dom';

export function section(
  id: string,
  title: string,
  lead: string,
  ...content: (Node | null)[]
): HTMLElement {
  return h(
    'section',
    { id, 'aria-labelledby': `${id}-heading` },
    h('h2', { id: `${id}-heading` }, title),
    lead ? h('p', { class: 'section-lead' }, lead) : null,
    ...content,
  );
}

// The report of a study that trains: changed runs, longer curves and new findings are merged into
// the document, and the page is redrawn.
import { h } from '../dom';
import type { StudyState } from '../generated/serve_schema';
import { follow } from './news';
import { progress_panel } from './progress';

interface StudyNews {
  version: number;
  reload: boolean; // other runs than the page knows
  state: StudyState;
  runs: { id?: string }[];
  curves: { id?: string }[];
  findings: { answer: unknown; advice: unknown; fit: unknown } | null;
}

/// The report's document as it came, before it is read (document.ts).
export interface RawDocument {
  runs: { id?: string }[];
  curves: { id?: string }[];
  answer?: unknown;
  advice?: unknown;
  fit?: unknown;
}

function lay_in(list: { id?: string }[], changed: { id?: string }[]): void {
  const place = new Map(list.map((entry, i) => [entry.id, i]));
  for (const entry of changed) {
    const at = place.get(entry.id);
    if (at === undefined) list.push(entry);
    else list[at] = entry;
  }
}

/// Whether anything that is drawn has changed.
function take_news(raw: RawDocument, news: StudyNews): boolean {
  lay_in(raw.runs, news.runs);
  lay_in(raw.curves, news.curves);
  if (news.findings) Object.assign(raw, news.findings);
  return news.runs.length > 0 || news.curves.length > 0 || news.findings !== null;
}

/// The panel above the report. `changed` is called after the document has changed.
export function live_study(address: string, raw: RawDocument, changed: () => void): HTMLElement {
  const panel = h('div', { class: 'live', 'aria-label': 'The study now' });
  const gone = h('p', { class: 'warning', role: 'status', hidden: true });
  gone.textContent = 'The server does not answer; the page shows what it said last.';
  const [path, query] = address.split('?') as [string, string];
  let version = Number(new URLSearchParams(query).get('seen'));
  follow<StudyNews>(
    () => `${path}?seen=${version}`,
    (news) => {
      if (news.reload) return location.reload();
      version = news.version;
      panel.replaceChildren(progress_panel(news.state));
      if (take_news(raw, news)) changed();
    },
    (yes) => (gone.hidden = yes),
  );
  return h('div', {}, panel, gone);
}

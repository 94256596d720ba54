// The lab's page: every claim with its verdict. The document comes from one program, is checked
// against the schema by its tests, and is read as it is.
import type { Plot } from '../charts/plot';
import type { Claim, LabDocument } from '../generated/lab_schema';
import { h } from '../dom';
import { top_bar } from '../page/header';
import { section } from '../page/section';
import { claim_view } from './claim_view';
import { lab_header } from './lab_header';
import { overview } from './overview';

/// Claims under their headings, both in the order of the table.
function by_topic(claims: Claim[]): Map<string, Claim[]> {
  const topics = new Map<string, Claim[]>();
  for (const claim of claims) topics.set(claim.topic, [...(topics.get(claim.topic) ?? []), claim]);
  return topics;
}

const anchor = (topic: string): string => topic.toLowerCase().replace(/[^a-z0-9]+/g, '-');

function build(lab: LabDocument): void {
  const plots: Plot[] = [];
  const topics = by_topic(lab.claims);
  const sections = [...topics].map(([topic, claims]) =>
    section(
      anchor(topic),
      topic,
      claims[0]!.topic_about,
      ...claims.map((claim) => claim_view(claim, plots)),
    ),
  );
  const links = [...topics.keys()].map((topic): [string, string] => [anchor(topic), topic]);
  addEventListener('beforeprint', () => plots.forEach((plot) => plot.print()));
  addEventListener('afterprint', () => plots.forEach((plot) => plot.update()));
  document
    .getElementById('page')!
    .append(
      top_bar([['all', 'All claims'], ...links]),
      h(
        'main',
        {},
        lab_header(lab),
        section('all', 'All claims', '', overview(lab.claims)),
        ...sections,
      ),
      h(
        'footer',
        {},
        'Written by Fathom. Everything on this page, data included, is in this one file.',
      ),
    );
}

const lab: LabDocument = JSON.parse(
  document.getElementById('fathom-document')!.textContent ?? '{}',
);
document.title = lab.title;
build(lab);
// For measuring: the page answers from here on.
requestAnimationFrame(() => setTimeout(() => performance.mark('fathom-ready')));

// The three buttons next to every chart: SVG, PNG, CSV.
import { button, h } from '../dom';
import { csv_text, type CsvTable } from './csv';
import { png_blob, svg_text } from './picture';

export function save(name: string, content: Blob): void {
  const url = URL.createObjectURL(content);
  const link = h('a', { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

export const save_csv = (name: string, table: CsvTable): void =>
  save(name, new Blob([csv_text(table)], { type: 'text/csv;charset=utf-8' }));

export function save_menu(
  id: string,
  title: string,
  drawn: () => SVGSVGElement,
  table: () => CsvTable,
): HTMLElement {
  return h(
    'div',
    { class: 'save', role: 'group', 'aria-label': `Save: ${title}` },
    button('SVG', 'Save as a vector picture', () =>
      save(`${id}.svg`, new Blob([svg_text(drawn(), title)], { type: 'image/svg+xml' })),
    ),
    button('PNG', 'Save as a picture', () => {
      void png_blob(drawn(), title).then((blob) => save(`${id}.png`, blob));
    }),
    button('CSV', 'Save the numbers', () => save_csv(`${id}.csv`, table())),
  );
}

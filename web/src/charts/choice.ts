// A row of mutually exclusive buttons: what a chart draws.
import { h } from '../dom';

export function choice<T extends string>(
  name: string,
  options: [T, string][],
  chosen: (value: T) => void,
): HTMLElement {
  const buttons = options.map(([value, text], index) => {
    const button = h(
      'button',
      { type: 'button', 'data-value': value, 'aria-pressed': String(index === 0) },
      text,
    );
    button.addEventListener('click', () => {
      for (const other of buttons) other.setAttribute('aria-pressed', String(other === button));
      chosen(value);
    });
    return button;
  });
  return h(
    'div',
    { class: 'choice', role: 'group', 'aria-label': name, hidden: options.length < 2 },
    ...buttons,
  );
}

// Light, dark, or the system's own. The choice is kept for the session where the browser lets it.
import { h } from '../dom';

const kKey = 'fathom-theme';

function stored(): string | null {
  try {
    return localStorage.getItem(kKey);
  } catch {
    return null;
  }
}

function store(value: string): void {
  try {
    localStorage.setItem(kKey, value);
  } catch {
    // A browser may refuse storage to file:// pages; the switch works without it.
  }
}

const is_dark = (): boolean => {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
};

export function theme_switch(): HTMLElement {
  const before = stored();
  if (before === 'dark' || before === 'light') document.documentElement.dataset.theme = before;
  const button = h('button', { type: 'button', class: 'theme', title: 'Light or dark' });
  const refresh = () => {
    button.textContent = is_dark() ? '☀ Light' : '☾ Dark';
    button.setAttribute('aria-label', is_dark() ? 'Switch to light' : 'Switch to dark');
  };
  button.addEventListener('click', () => {
    const next = is_dark() ? 'light' : 'dark';
    document.documentElement.dataset.theme = next;
    store(next);
    refresh();
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', refresh);
  refresh();
  return button;
}

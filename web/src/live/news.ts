// Pages of 'fathom serve' keep polling while they are open; the same page as a file asks nothing.

/// Where a served page asks for updates; null in a file.
export function news_address(): string | null {
  const meta = document.querySelector('meta[name=fathom-news]');
  return meta?.getAttribute('content') || null;
}

export async function fetch_json<T>(address: string): Promise<T> {
  const reply = await fetch(address);
  if (!reply.ok) throw new Error((await reply.text()).trim());
  return (await reply.json()) as T;
}

const kEvery = 2000;
const kSlowest = 30_000;

/// Asks every two seconds while the page is in view, and ever more slowly once no answer comes.
export function follow<T>(
  address: () => string,
  take: (news: T) => void,
  answered: (yes: boolean) => void,
): void {
  let wait = kEvery;
  const ask = async () => {
    if (!document.hidden) {
      try {
        take(await fetch_json<T>(address()));
        wait = kEvery;
        answered(true);
      } catch {
        wait = Math.min(kSlowest, 2 * wait);
        answered(false);
      }
    }
    setTimeout(() => void ask(), wait);
  };
  void ask();
}

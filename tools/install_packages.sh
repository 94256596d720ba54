#!/usr/bin/env bash
# Installs the Debian packages of packages/debian.txt that are missing (with the argument `tests` also
# those of packages/debian-tests.txt), then the default corpus; does nothing when all is there. A node
# and npm from elsewhere on the PATH are good enough.
set -euo pipefail
cd "$(dirname "$0")/.."
lists=(packages/debian.txt)
[[ ${1:-} == tests ]] && lists+=(packages/debian-tests.txt)

missing=()
while read -r package; do
  [[ $package == nodejs ]] && command -v node >/dev/null && continue
  [[ $package == npm ]] && command -v npm >/dev/null && continue
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' ||
    missing+=("$package")
done < <(grep -hv '^#' "${lists[@]}")
((${#missing[@]} == 0)) && exec tools/install_corpora.sh

as_root=()
if ((EUID != 0)); then
  command -v sudo >/dev/null || {
    echo "these packages are missing and neither root nor sudo is at hand: ${missing[*]}" >&2
    exit 1
  }
  as_root=(sudo)
fi
echo "installing: ${missing[*]}" >&2
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
exec tools/install_corpora.sh

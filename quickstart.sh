#!/usr/bin/env bash
# From a clean clone to the first answer: installs packages, builds, plans a 1.3B model.
set -euo pipefail
cd "$(dirname "$0")"
tools/install_packages.sh
cmake --preset release -DFATHOM_TESTS=OFF >/dev/null
cmake --build --preset release
exec build/release/fathom plan 1.3B

#!/usr/bin/env bash
# From a clean clone to the first answer: installs packages, builds, trains the quick study (a grid
# of small transformers on the default corpus, a few minutes on two cores), and plans with its law.
# If interrupted, run it again: it continues where it stopped.
set -euo pipefail
cd "$(dirname "$0")"
tools/install_packages.sh
cmake --preset release -DFATHOM_TESTS=OFF >/dev/null
cmake --build --preset release
fathom=build/release/fathom
"$fathom" study run --preset quick runs/quick
"$fathom" study fit runs/quick
"$fathom" plan 10M --law study:runs/quick
echo
echo "The report: $("$fathom" study report runs/quick)"

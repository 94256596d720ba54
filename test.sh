#!/usr/bin/env bash
# Installs packages, builds and runs all tests.   ./test.sh [release|dev|asan|tsan]
set -euo pipefail
cd "$(dirname "$0")"
preset=${1:-release}
tools/install_packages.sh tests
cmake --preset "$preset" -DFATHOM_TESTS=ON >/dev/null
cmake --build --preset "$preset"
ctest --preset "$preset" -j "$(nproc)"

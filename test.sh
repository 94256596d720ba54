#!/usr/bin/env bash
# Installs packages, checks sources and docs, builds and runs all tests.
#   ./test.sh [release|dev|asan|tsan]
set -euo pipefail
cd "$(dirname "$0")"
preset=${1:-release}
tools/install_packages.sh tests
cmake --preset "$preset" -DFATHOM_TESTS=ON >/dev/null
# The checks run during the build: neither keeps all cores busy all the time.
tools/check.sh "build/$preset" &
checks=$!
trap 'kill "$checks" 2>/dev/null || true' EXIT
cmake --build --preset "$preset"
wait "$checks"
trap - EXIT
# Two more than there are cores: the tests of Slurm and of the browser mostly wait.
ctest --preset "$preset" -j "$(($(nproc) + 2))"

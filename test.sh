#!/usr/bin/env bash
# Installs packages, checks sources and docs, builds and runs all tests.
#   ./test.sh [release|dev|asan|tsan]
set -euo pipefail
cd "$(dirname "$0")"
preset=${1:-release}
tools/install_packages.sh tests
cmake --preset "$preset" -DFATHOM_TESTS=ON >/dev/null
tools/check.sh "build/$preset"
cmake --build --preset "$preset"
# Two more than there are cores: the tests of Slurm and of the browser mostly wait.
ctest --preset "$preset" -j "$(($(nproc) + 2))"

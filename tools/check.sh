#!/usr/bin/env bash
# Quick checks of sources and docs; ./test.sh runs them.   tools/check.sh [--all] [BUILD_FOLDER]
#
#   format   clang-format 14 on every source (its versions differ, so it is pinned)
#   size     no source above 500 lines
#   docs     widths, links and named paths (tools/check_docs.mjs)
#   tidy     clang-tidy 14 on sources of src/ that changed since the branch left main, or in the last
#            commit when on main: the six most changed at most. With --all every source of src/ and
#            tests/.
#   headers  headers of src/ that changed, or with --all every one, compile alone
#
# The last two write to BUILD_FOLDER/tidy (default build/release/tidy) and may run during a build.
set -euo pipefail
cd "$(dirname "$0")/.."

all=false
build=build/release
for argument in "$@"; do
  case $argument in
    --all) all=true ;;
    *) build=$argument ;;
  esac
done
most_tidied=6 most_headers=24
failed=0 configured=

tool() {  # the path of a clang tool of version 14
  local path
  path=$(command -v "$1-14" || command -v "$1" || true)
  if [ -z "$path" ] || ! "$path" --version | grep -q "version 14\."; then
    echo "check: $1 14 is missing; tools/install_packages.sh tests installs it" >&2
    return 1
  fi
  echo "$path"
}

sources() { find src tests bench tools \( -name '*.cpp' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh' \); }

check_format() {
  local clang_format
  clang_format=$(tool clang-format) || return 1
  sources | sort | xargs -P "$(nproc)" -n 32 "$clang_format" --dry-run -Werror
}

check_size() {
  local long
  long=$({ sources; find web/src -name '*.ts' -o -name '*.css'; } | xargs wc -l |
    awk '$1 > 500 && $2 != "total" { print $2 ": " $1 " lines; cut it below 500" }')
  [ -z "$long" ] || { echo "$long"; return 1; }
}

# The commit that changes are counted from; nothing where there is no history.
base() {
  local start
  start=$(git merge-base HEAD origin/main 2>/dev/null || git merge-base HEAD main 2>/dev/null || true)
  if [ -z "$start" ] || [ "$start" = "$(git rev-parse HEAD)" ]; then
    start=$(git rev-parse --verify --quiet HEAD~1 || true)
  fi
  echo "$start"
}

changed() {  # files of a pattern, the most changed first
  local start
  start=$(git rev-parse --git-dir >/dev/null 2>&1 && base || true)
  [ -n "$start" ] || return 0
  git diff --numstat --diff-filter=d "$start" -- "$1" | sort -k1,1nr | cut -f3
}

# Configures $build/tidy, next to a build that may be running: without unity builds, whose files
# clang-tidy could not tell apart, and without GCC's precompiled headers, which clang does not read.
commands_for_single_files() {
  [ -n "$configured" ] && return
  cmake -S . -B "$build/tidy" -G Ninja -DCMAKE_BUILD_TYPE=Release -DFATHOM_UNITY=OFF -DFATHOM_PCH=OFF \
    >/dev/null
  configured=yes
}

check_tidy() {
  local clang_tidy files count
  clang_tidy=$(tool clang-tidy) || return 1
  commands_for_single_files
  if $all; then
    files=$(find src tests -name '*.cpp' | grep -v '^tests/fuzz/' | sort)
  else
    files=$(changed 'src/*.cpp')
  fi
  # Only what this build compiles, and not the kernels, which use GCC's __builtin_shuffle.
  files=$(grep -v '_simd\.cpp$' <<<"$files" || true)
  files=$(for file in $files; do grep -q "/$file\"" "$build/tidy/compile_commands.json" && echo "$file"; done || true)
  count=$(wc -w <<<"$files")
  if ! $all && [ "$count" -gt "$most_tidied" ]; then
    echo "tidy: the $most_tidied most changed of $count sources (tools/check.sh --all takes all)"
    files=$(head -n "$most_tidied" <<<"$files")
  fi
  [ -n "$files" ] || return 0
  xargs -P "$(nproc)" -n 1 "$clang_tidy" --quiet -p "$build/tidy" <<<"$files" 2>"$build/tidy/log" ||
    { grep -v 'warnings generated' "$build/tidy/log" | head -50; return 1; }
}

check_headers() {
  local headers=""
  $all || headers=$(changed 'src/*.h' | head -n "$most_headers")
  if $all || [ -n "$headers" ]; then
    commands_for_single_files
    xargs node tools/check_headers.mjs "$build/tidy" <<<"$headers"
  fi
}

run() {
  if "check_$1"; then echo "check: $1 passed"; else
    echo "check: $1 FAILED" >&2
    failed=1
  fi
}

run format
run size
if node tools/check_docs.mjs; then :; else failed=1; fi
run tidy
run headers
exit $failed

#!/usr/bin/env bash
# Runs every fuzz target for a while, as many side by side as there are processors, and prints one
# table. What they find and how they went is kept in OUT.
#   tests/fuzz/run.sh [SECONDS each, default 600] [OUT, default build/fuzz/findings] [PROGRAM]
# PROGRAM is all_fuzz, which is the target whose name it is called by; default build/fuzz/all_fuzz.
# PROCESSES in the environment: another number at once.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
seconds=${1:-600}
out=${2:-$here/../../build/fuzz/findings}
program=$(realpath "${3:-$here/../../build/fuzz/all_fuzz}")
mkdir -p "$out"
out=$(realpath "$out")
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 ASAN_OPTIONS=detect_leaks=1 OMP_NUM_THREADS=1
export here seconds out program

fuzz() { # NAME
  local dict=
  [[ -f $here/$1.dict ]] && dict=-dict=$here/$1.dict
  mkdir -p "$out/corpus/$1" "$out/bin"
  ln -sf "$program" "$out/bin/$1_fuzz"
  "$out/bin/$1_fuzz" -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=10 \
    -artifact_prefix="$out/$1-" -print_final_stats=1 ${dict:+"$dict"} \
    "$out/corpus/$1" "$here/seeds/$1" >"$out/$1.log" 2>&1 || true
}
export -f fuzz
ls "$here/seeds" | xargs -P "${PROCESSES:-$(nproc)}" -I{} bash -c 'fuzz {}'

printf '%-12s %12s %9s\n' target executions findings
failed=0
for name in $(ls "$here/seeds"); do
  found=$(find "$out" -maxdepth 1 -name "$name-*" | wc -l)
  ran=$(sed -n 's/^stat::number_of_executed_units: *//p' "$out/$name.log")
  printf '%-12s %12s %9s\n' "$name" "${ran:-crashed}" "$found"
  ((found == 0)) && [[ -n $ran ]] || failed=1
done
exit $failed

#!/usr/bin/env bash
# The long attack by the clock, on many cores: every kind with seeds of its own, each process in a
# scratch folder of its own. Prints one table; what is wrong is kept, case by case, in OUT.
#   tests/attack/all.sh FOLDER SECONDS SEED OUT [MUTANTS] [FLIPS] [KILLS]
# FOLDER holds attack, fathom and libattack_faults.so. The last three are numbers of processes
# (default 7, 1 and 2; 0 leaves a kind out); together they share 200,000 mutants, 5,000 flips and
# 1,000 kills.
set -euo pipefail
folder=$(realpath "$1") seconds=$2 seed=$3 out=$4
mkdir -p "$out"
out=$(realpath "$out")
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 GOMP_SPINCOUNT=1000
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 ASAN_OPTIONS=detect_leaks=0
declare -a processes=()

start() {  # KIND PROCESSES CASES
  for ((i = 0; i < $2; i++)); do
    local name=$1-$((seed + i))
    mkdir -p "$out/scratch-$name"
    TMPDIR="$out/scratch-$name" "$folder/attack" "$1" $((($3 + $2 - 1) / $2)) $((seed + i)) \
      >"$out/$name.table" 2>"$out/$name.wrong" &
    processes+=($!)
  done
}
start mutants "${5:-7}" 200000
start flips "${6:-1}" 5000
start kills "${7:-2}" 1000

end=$((SECONDS + seconds))
while ((SECONDS < end)) && [[ -n $(jobs -rp) ]]; do sleep 1; done
kill -TERM "${processes[@]}" 2>/dev/null || true
failed=0
for process in "${processes[@]}"; do wait "$process" || failed=1; done
rm -rf "$out"/scratch-*

cat "$out"/*.wrong
printf '%-10s %10s %8s %12s %12s\n' attack cases wrong 'worst s' 'worst MB'
for kind in mutants flips kills; do
  compgen -G "$out/$kind-*.table" >/dev/null || continue
  tail -qn1 "$out/$kind"-*.table | awk -v kind="$kind" '$1 == kind {
      cases += $2; wrong += $4
      if ($6 > seconds) seconds = $6
      if ($8 > megabytes) megabytes = $8
    } END { printf "%-10s %10d %8d %12.2f %12d\n", kind, cases, wrong, seconds, megabytes }'
done
exit $failed

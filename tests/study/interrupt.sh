#!/usr/bin/env bash
# Interrupts a tiny study at random moments, with Ctrl-C, study stop and kill -9 of the command, of a
# worker or of all of them, then lets it finish, and compares everything it leaves with an
# undisturbed run: records but for their times, metrics and checkpoints to the last bit.
# With `design` the study chooses its runs in rounds, and the choices must be the same too.
#   tests/study/interrupt.sh FATHOM [TRIES] [SEED] [design]
set -euo pipefail
fathom=$(realpath "$1")
tries=${2:-20}
RANDOM=${3:-1}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for i in $(seq 40); do
  echo "= Article $i ="
  for j in $(seq 60); do echo "Word $((i * j % 97)) follows word $((i + j)) in sentence $j."; done
  echo
done >"$work/corpus.txt"
shapes='[grid]
kind = "list"
shapes = ["1x16", "2x16", "1x32", "2x32", "4x16", "4x32"]
head_size = 16
[budget]
tokens = [20480, 40960]'
[[ ${4:-} != design ]] || shapes='[design]
decide = ["form", "b"]
error = [1e6, 1e-4]
runs = 100
round_share = 0.06
depths = [1, 2, 3, 4, 6, 8]
sizes = ["6K", "200K"]
min_width = 16
[budget]
tokens = [2560, 5120]'
cat >"$work/spec.toml" <<EOF
[corpus]
path = "$work/corpus.txt"
tokenizer = "chars"
valid = 0.2
eval_tokens = 512
$shapes
[model]
context = 32
dropout = 0.1
[train]
batch = 4
learning_rate = 0.003
schedule = "wsd"
warmup = 5
eval_every = 20
checkpoint_every = 7
EOF

# Everything but times, in one digest. The study lies at the same path in both runs.
digest() {
  (cd "$1" && for run in runs/*; do
    grep -v -e '"seconds"' -e '"timed_steps"' -e '"checksum"' "$run/record.json"
    cat "$run/metrics.jsonl"
    md5sum "$run/checkpoint/state.safetensors"
  done; cat points.csv; if [[ -f design.json ]]; then cat design.json; fi) | md5sum
}

study=$work/study
"$fathom" study run "$work/spec.toml" "$study" --jobs 2 >/dev/null 2>"$work/log" || {
  cat "$work/log"
  exit 1
}
runs=$(ls "$study/runs" | wc -l)
expected=$(digest "$study")
rm -rf "$study"

# Compares a finished study and puts it away.
check() {
  local done_runs actual
  done_runs=$(ls "$study"/runs/*/record.json | wc -l)
  actual=$(digest "$study")
  if [[ $actual != "$expected" || $done_runs != "$runs" ]]; then
    echo "interrupt: the result differs after $disturbed disturbances ($done_runs of $runs runs)"
    tail -5 "$work/log"
    exit 1
  fi
  finished=$((finished + 1))
  rm -rf "$study"
}

disturbed=0
finished=0
while ((disturbed < tries)); do
  "$fathom" study run "$work/spec.toml" "$study" --jobs 2 >/dev/null 2>>"$work/log" &
  command=$!
  sleep "0.$(printf %03d $((RANDOM % 900)))"
  case $((RANDOM % 4)) in
    0) kill -INT $command 2>/dev/null ;;
    1) "$fathom" study stop "$study" >/dev/null 2>&1 ;;
    2) kill -9 $command 2>/dev/null ;;
    3) # a worker, then the command
      worker=$(cat "$study"/runs/*/claim 2>/dev/null | awk 'NR == 1 {print $1}')
      [[ -n $worker ]] && grep -qs worker "/proc/$worker/cmdline" && kill -9 "$worker" 2>/dev/null
      kill -9 $command 2>/dev/null ;;
  esac || true
  if wait $command 2>/dev/null; then
    check # it was done before the blow fell: compare and begin anew
  else
    disturbed=$((disturbed + 1))
  fi
done
"$fathom" study run "$work/spec.toml" "$study" --jobs 2 >/dev/null 2>>"$work/log"
check
echo "interrupt: $disturbed disturbances, $finished times $runs runs finished with the same bits"

#!/usr/bin/env bash
# kill -9 at random moments under a real Slurm of three nodes: of the submitting command, of tasks, of
# workers, of a node's daemon and of the controller, over studies of many short runs. After every blow
# the same command goes on. Each study must end with every run once, the bits of the local executor
# and no temporary file. Exit code 77: Slurm cannot start here.
#   [DESIGN=1] tests/study/slurm_kills.sh FATHOM [BLOWS] [SEED]
# With DESIGN=1 the study is adaptive: rounds of its own choice, over 60 runs in all, which must be
# the rounds and runs of the local executor.
set -euo pipefail
fathom=$(realpath "$1")
blows=${2:-100}
RANDOM=${3:-1}
here=$(cd "$(dirname "$0")" && pwd)
source "$here/slurm_cluster.sh"

work=$(mktemp -d)
chmod 755 "$work" # munge wants its socket reachable
study=$work/study
command=
operator=
finish() {
  [[ -n $operator ]] && kill "$operator" 2>/dev/null || true
  [[ -n $command ]] && kill -9 "$command" 2>/dev/null && wait "$command" 2>/dev/null || true
  [[ -n ${slurm_dir:-} ]] && stop_slurm || true
  if [[ -n ${KEEP:-} ]]; then echo "kept: $work"; else rm -rf "$work"; fi
}
trap finish EXIT
for i in $(seq 40); do
  echo "= Article $i ="
  for j in $(seq 60); do echo "Word $((i * j % 97)) follows word $((i + j)) in sentence $j."; done
  echo
done >"$work/corpus.txt"
# An error nobody can reach, and a budget of which half is spent before a design may say so.
design='[design]
decide = "b"
error = 1e-6
runs = 120
depths = [1, 2, 3, 4, 6]
sizes = ["3K", "200K"]
head_size = 16
min_width = 16'
grid='[grid]
kind = "list"
shapes = ["1x16", "2x16", "1x32"]
head_size = 16
[seeds]
all = [1, 2, 3, 4]'
cat >"$work/spec.toml" <<EOF
[corpus]
path = "$work/corpus.txt"
tokenizer = "bytes"
valid = 0.2
eval_tokens = 512
$([[ -n ${DESIGN:-} ]] && echo "$design" || echo "$grid")
[budget]
tokens = ${TOKENS:-20480}
[model]
context = 32
[train]
batch = 4
learning_rate = 0.003
eval_every = 40
checkpoint_every = 10
EOF

# Everything but times.
digest() {
  (cd "$1" && for run in runs/*; do
    grep -v -e '"seconds"' -e '"timed_steps"' -e '"checksum"' "$run/record.json"
    cat "$run/metrics.jsonl"
    md5sum "$run/checkpoint/state.safetensors"
  done && cat points.csv && { [[ ! -e design.json ]] || grep -v -e '"jobs"' -e '"checksum"' design.json; }) | md5sum
}
"$fathom" study run "$work/spec.toml" "$study" >/dev/null 2>&1
whole=$(digest "$study")
runs=$(ls "$study/runs" | wc -l)
rm -r "$study"

start_slurm "$work/slurm" 2 3 || exit $?
while sleep 2; do # a node that a lost controller drained ("duplicate job id") is given back
  sinfo -h -N -o '%N %T' 2>/dev/null | while read -r node state; do
    if [[ $state == drain* || $state == down* ]]; then
      scontrol update nodename="$node" state=resume 2>/dev/null
    fi
  done || true
done &
operator=$!

submit() {
  "$fathom" study run "$work/spec.toml" "$study" --executor slurm --partition main \
    --runs-per-task 2 --stall-seconds 30 >"$work/out" 2>>"$work/log" &
  command=$!
}
running() { jobs -rp | grep -qx "$command"; }
records() { ls "$study"/runs/*/record.json 2>/dev/null | wc -l; }
one_of() { pgrep -f "$1" | shuf -n 1 --random-source=<(yes $RANDOM) || true; }

declare -A count=([submitter]=0 [task]=0 [worker]=0 [node]=0 [controller]=0)
blow() { # the name of what to strike; false when there is none
  local victim
  case $1 in
    submitter) victim=$command && running ;;
    task | worker) victim=$(one_of "study $1 $study") && [[ -n $victim ]] ;;
    node) victim=$(cat "$slurm_dir/${slurm_nodes[RANDOM % 3]}.pid") ;;
    controller) victim=$(cat "$slurm_dir/slurmctld.pid") ;;
  esac || return 1
  kill -9 "$victim" 2>/dev/null || return 1
  count[$1]=$((count[$1] + 1))
  made=$((made + 1))
}
revive() { # daemons that were struck
  local node
  pgrep -F "$slurm_dir/slurmctld.pid" >/dev/null 2>&1 || slurmctld
  for node in "${slurm_nodes[@]}"; do
    pgrep -F "$slurm_dir/$node.pid" >/dev/null 2>&1 || start_node "$node"
  done
}
check() {
  local left
  (($(records) == runs)) || { echo "$(records) of $runs runs have a record" && return 1; }
  [[ $(digest "$study") == "$whole" ]] || { echo "other bits than the local executor's" && return 1; }
  left=$(find "$study" -name '*.tmp*')
  [[ -z $left ]] || { echo "left: $left" && return 1; }
}

kinds=(submitter submitter task task task worker worker worker worker node node controller)
made=0 studies=0 again=0 wrong=0
submit
end=$((SECONDS + ${MOST_SECONDS:-3000}))
while true; do
  if ! running; then
    code=0
    wait "$command" || code=$?
    if ((code == 0)); then
      studies=$((studies + 1))
      check || { wrong=$((wrong + 1)) && cp -r "$study" "$work/wrong$studies"; }
      echo "$(date +%T) study $studies ended after $made blows (${wrong} wrong)"
      ((made < blows && SECONDS < end)) || break
      rm -r "$study"
    else
      again=$((again + 1))
      ((code == 137)) || echo "$(date +%T) study run ended with $code: $(tail -1 "$work/log")"
    fi
    submit
  fi
  sleep "$((RANDOM % 2)).$((RANDOM % 10))"
  ((made < blows && SECONDS < end)) && blow "${kinds[RANDOM % ${#kinds[@]}]}" || true
  revive
done
echo "slurm kills: $made blows (submitter ${count[submitter]}, task ${count[task]}, worker" \
  "${count[worker]}, node ${count[node]}, controller ${count[controller]}), $studies studies of" \
  "$runs runs, the command called again $again times, $wrong wrong"
((wrong == 0))

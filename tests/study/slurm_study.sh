#!/usr/bin/env bash
# A study on a real Slurm of one node, or of NODES, while tasks, workers, a node daemon and the
# controller are killed (BLOWS in the environment says what, in order; see blow() below): every run
# ends with one record, nothing is trained twice at once, and the records are those of the local
# executor. Then a submitter is killed: its tasks go on and keep the tables, and fit and report say
# the same. Exit code 77: Slurm cannot start here.
# With DESIGN=60 in the environment the study chooses its runs in rounds, so many at most.
#   tests/study/slurm_study.sh FATHOM [SEEDS]     SEEDS times 4 runs
set -euo pipefail
fathom=$(realpath "$1")
seeds=${2:-3}
here=$(cd "$(dirname "$0")" && pwd)
source "$here/slurm_cluster.sh"

work=$(mktemp -d)
chmod 755 "$work" # munge wants its socket reachable
command=
operator=
finish() {
  [[ -n $operator ]] && kill "$operator" 2>/dev/null || true
  [[ -n $command ]] && kill "$command" 2>/dev/null && wait "$command" 2>/dev/null || true
  [[ -n ${slurm_dir:-} ]] && stop_slurm || true
  if [[ -n ${KEEP:-} ]]; then echo "kept: $work"; else rm -rf "$work"; fi
}
trap finish EXIT
start_slurm "$work/slurm" "${CPUS:-2}" "${NODES:-1}" || exit $?
# A controller that lost its last seconds may drain a node for a "duplicate job id"; people who run
# clusters then resume it.
while sleep 2; do
  [[ -e $work/draining ]] && continue
  sinfo -h -N -o '%N %T' 2>/dev/null | while read -r node state; do
    if [[ $state == drain* ]]; then scontrol update nodename="$node" state=resume 2>/dev/null; fi
  done || true  # a controller that was killed answers nothing
done &
operator=$!
# A squeue that can be made slow, or hang.
mkdir "$work/bin"
printf '#!/bin/sh\n[ -e %s/slow ] && sleep 4\n[ -e %s/hang ] && sleep 1000\nexec %s "$@"\n' \
  "$work" "$work" "$(command -v squeue)" >"$work/bin/squeue"
chmod 755 "$work/bin/squeue"

for i in $(seq 40); do
  echo "= Article $i ="
  for j in $(seq 60); do echo "Word $((i * j % 97)) follows word $((i + j)) in sentence $j."; done
  echo
done >"$work/corpus.txt"
shapes='[grid]
kind = "list"
shapes = ["1x16", "2x16", "1x32", "2x32"]
head_size = 16'
[[ -z ${DESIGN:-} ]] || shapes="[design]
decide = \"b\"
error = 0.001
runs = $DESIGN
depths = [1, 2, 3, 4, 6, 8]
sizes = [\"6K\", \"200K\"]
min_width = 16"
cat >"$work/spec.toml" <<EOF
[corpus]
path = "$work/corpus.txt"
tokenizer = "bytes"
valid = 0.2
eval_tokens = 512
$shapes
[budget]
tokens = ${TOKENS:-163840}
[seeds]
all = [$(seq -s, "$seeds")]
[model]
context = 32
[train]
batch = 4
learning_rate = 0.003
eval_every = 100
checkpoint_every = 20
EOF
runs=${DESIGN:-$((seeds * 4))}
study=$work/study

PATH=$work/bin:$PATH "$fathom" study run "$work/spec.toml" "$study" --executor slurm \
  --partition main --runs-per-task "${RUNS_PER_TASK:-2}" --stall-seconds 30 >"$work/out" 2>"$work/log" &
command=$!

records() { ls "${1:-$study}"/runs/*/record.json 2>/dev/null | wc -l; }
wait_for() { # a number of records, for at most four minutes
  local i
  for i in $(seq 480); do
    (($(records) >= $1)) && return 0
    running || return 0
    sleep 0.5
  done
  return 0
}
running() { jobs -rp | grep -qx "$command"; }
say() { echo "$(date +%T) $* ($(records) of $runs done)"; }

blow() {
  local victim
  case $1 in
    task) # the batch script of a task, as a machine out of memory would
      victim=$(pgrep -f "study task $study" | head -1 || true)
      [[ -n $victim ]] && kill -9 "$victim" && say "killed a task (process $victim)" ;;
    worker)
      victim=$(pgrep -f "study worker $study" | head -1 || true)
      [[ -n $victim ]] && kill -9 "$victim" && say "killed a worker (process $victim)" ;;
    warning) # what Slurm sends to the batch script before its time is up
      victim=$(pgrep -f "study task $study" | head -1 || true)
      [[ -n $victim ]] && kill -USR1 "$victim" && say "SIGUSR1 to a task (process $victim)" ;;
    node)
      kill_node && say "killed the node daemon" && sleep 3 && start_node && say "started it again" ;;
    node-long) # long enough for the controller to give the node up and queue its tasks again
      kill_node && say "killed the node daemon" && sleep 35
      say "the node is $(sinfo -h -o %T)" && start_node && say "started it again" ;;
    drain) # a node is taken out while its tasks run, and given back
      touch "$work/draining"
      scontrol update nodename="${slurm_nodes[-1]}" state=drain reason=trial
      say "drained ${slurm_nodes[-1]}" && sleep 6
      scontrol update nodename="${slurm_nodes[-1]}" state=resume && rm "$work/draining"
      say "gave it back" ;;
    requeue) # as preemption does
      victim=$(squeue -h -r -t RUNNING -o %F_%K | head -1)
      [[ -n $victim ]] && scontrol requeue "$victim" && say "requeued task $victim" ;;
    freeze) # the controller answers nothing for a while
      kill -STOP "$(cat "$slurm_dir/slurmctld.pid")" && say "froze the controller" && sleep 20
      kill -CONT "$(cat "$slurm_dir/slurmctld.pid")" && say "let it go on" ;;
    second) # another command at the same study
      victim=0
      "$fathom" study run "$study" --executor slurm --partition main >/dev/null 2>&1 || victim=$?
      ((victim == 2)) || { echo "a second submitter ended with code $victim" >&2; exit 1; }
      say "a second submitter was refused" ;;
    slow)
      touch "$work/slow" && sleep 10 && rm "$work/slow" && say "squeue was slow" ;;
    hang)
      touch "$work/hang" && sleep 35 && rm "$work/hang" && say "squeue hung" ;;
    controller)
      kill_controller && say "killed the controller" && sleep 3 && slurmctld && say "started it again" ;;
  esac || say "nothing to do for: $1"
}

read -ra blows <<<"${BLOWS:-warning task worker node controller}"
for i in "${!blows[@]}"; do
  wait_for $((1 + i * runs / (${#blows[@]} + 1)))
  running || break
  blow "${blows[$i]}"
done

code=0
wait "$command" || code=$?
command=
say "study run ended with code $code"
((code == 0)) || {
  tail -20 "$work/log"
  "$fathom" study status "$study"
  exit 1
}
# A design may end before its runs are spent; the local executor tells how many it takes.
[[ -z ${DESIGN:-} ]] || runs=$(records)
(($(records) == runs)) || exit 1

# The record of a run is written once: its lines of metrics are one story, step by step.
for run in "$study"/runs/*; do
  steps=$(grep -c gradient_norm "$run/metrics.jsonl")
  last=$(grep gradient_norm "$run/metrics.jsonl" | tail -1 | sed 's/.*"step":\([0-9]*\).*/\1/')
  [[ $steps == "$last" ]] || {
    echo "$run: $steps steps in its metrics, the last is $last"
    exit 1
  }
done

times='"seconds"|"timed_steps"|"checksum"'
collect() { for run in "$1"/runs/*; do grep -Ev "$times" "$run/record.json"; cat "$run/metrics.jsonl"; done; }
collect "$study" >"$work/slurm.txt"
"$fathom" study run "$work/spec.toml" "$work/local" >/dev/null 2>&1
collect "$work/local" >"$work/local.txt"
cmp "$work/slurm.txt" "$work/local.txt"
cmp "$study/points.csv" "$work/local/points.csv"
if [[ -n ${DESIGN:-} ]]; then
  cmp "$study/design.json" "$work/local/design.json"
  echo "slurm: $runs runs of a design, chosen and finished as by the local executor"
  exit 0
fi

# A submitter that is lost with work in the queue.
lost=$work/lost
"$fathom" study run "$work/spec.toml" "$lost" --set "seeds.all=[1]" --executor slurm \
  --partition main --runs-per-task 1 >/dev/null 2>>"$work/log" &
command=$!
for i in $(seq 240); do
  (($(records "$lost") >= 1)) && break
  sleep 0.25
done
kill -9 "$command" && wait "$command" 2>/dev/null || true
command=
say "killed the submitter of another study ($(records "$lost") of its 4 runs done)"
for i in $(seq 480); do
  [[ $(wc -l <"$lost/points.csv") == 5 ]] && break
  sleep 0.25
done
[[ $(records "$lost") == 4 && $(wc -l <"$lost/points.csv") == 5 ]] || {
  echo "without its submitter: $(records "$lost") records, $(wc -l <"$lost/points.csv") lines of points"
  exit 1
}
rm "$lost/points.csv"
"$fathom" study fit "$lost" --json >"$work/fit.json" 2>/dev/null
"$fathom" study report "$lost" >/dev/null
node -e '
  const [fit, report] = process.argv.slice(1).map((file) => JSON.parse(require("fs").readFileSync(file)));
  const { schema, fathom, ...said } = fit;
  if (said.runs !== 4) throw new Error(`the fit has ${said.runs} runs`);
  require("assert").deepStrictEqual(report.fit, said);' "$work/fit.json" "$lost/report.json"
echo "slurm: $runs runs finished once, the records equal those of the local executor;" \
  "$(grep -c 'Slurm job' "$work/log") submissions"

#!/usr/bin/env bash
# The training runs of a lab's claim as Slurm tasks: one worker is killed on the way, and what the
# lab says in the end is what it says when this machine trains the runs itself. Exit code 77: Slurm
# cannot start here.
#   tests/study/slurm_lab.sh FATHOM
set -euo pipefail
fathom=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
source "$here/slurm_cluster.sh"

work=$(mktemp -d)
chmod 755 "$work" # munge wants its socket reachable
trap 'stop_slurm || true; rm -rf "$work"' EXIT
start_slurm "$work/slurm" 2 || exit $?

claim=head-size
"$fathom" lab run $claim --quick --out "$work/slurm-lab" --executor slurm --partition main \
  --runs-per-task 3 >"$work/out" 2>"$work/log" &
command=$!
for i in $(seq 240); do
  worker=$(pgrep -f "study worker $work/slurm-lab" | head -1 || true)
  [[ -n $worker ]] && kill -9 "$worker" && echo "killed a worker (process $worker)" && break
  sleep 0.25
done
wait $command || {
  tail -20 "$work/log"
  exit 1
}
grep -q 'Slurm job' "$work/log" || {
  echo "nothing was submitted"
  exit 1
}
"$fathom" lab run $claim --quick --out "$work/local-lab" >/dev/null 2>&1
node -e '
  const read = (folder) => JSON.parse(require("fs").readFileSync(`${folder}/results/'$claim'.json`));
  const strip = ({ seconds, part_seconds, wall, resumed, notes, checksum, ...said }) => said;
  const [slurm, local] = process.argv.slice(1).map(read).map(strip);
  require("assert").deepStrictEqual(slurm, local);' "$work/slurm-lab" "$work/local-lab"
records=$(ls "$work/slurm-lab"/runs/*/record.json | wc -l)
(($(ls "$work/slurm-lab/runs" | wc -l) == records))
echo "slurm: $records runs of $claim, the verdict equals the local one"

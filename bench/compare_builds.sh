#!/usr/bin/env bash
# Training steps of two builds, taking turns, as a table of ratios:
#   bench/compare_builds.sh BEFORE AFTER [cpu|cuda] [SHAPES] [ROUNDS]
# The best step of every round counts; taking turns keeps a machine that warms up or has neighbours
# from favouring one. On a GPU 65,536 tokens per step, bf16; on CPU 2,048 tokens, f32.
set -euo pipefail
before=$1 after=$2 device=${3:-cuda}
shapes=${4:-6x128,12x256,12x512,24x1024}
rounds=${5:-5}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [[ $device == cuda ]]; then
  options=(--device cuda --precision bf16 --context 1024 --batch 64 --vocab 2048 --head-size 64
           --activation gelu_tanh --seconds 1)
else
  options=(--context 128 --batch 16 --vocab 2000 --head-size 32 --seconds 4)
fi
for ((round = 0; round < rounds; ++round)); do
  for build in before after; do
    "${!build}" bench train --shapes "$shapes" "${options[@]}" --json > "$work/$build.$round.json"
  done
done
python3 - "$work" <<'PYTHON'
import glob, json, statistics, sys

def steps(build):
    times = {}
    for name in sorted(glob.glob(f"{sys.argv[1]}/{build}.*.json")):
        for row in json.load(open(name))["shapes"]:
            times.setdefault(f"{row['layers']}x{row['width']}", []).append(row["best_seconds"])
    return times

before, after = steps("before"), steps("after")
print("| shape | before, ms | after, ms | after / before | spread of rounds |")
print("|---|---|---|---|---|")
for shape, times in before.items():
    ratios = [b / a for a, b in zip(times, after[shape])]
    spread = 100 * (max(ratios) - min(ratios)) / 2
    print(f"| {shape} | {1e3 * min(times):.4f} | {1e3 * min(after[shape]):.4f} | "
          f"{min(after[shape]) / min(times):.4f} (median {statistics.median(ratios):.4f}) | "
          f"±{spread:.1f} % |")
PYTHON

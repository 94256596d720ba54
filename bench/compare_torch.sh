#!/usr/bin/env bash
# Training steps on one GPU compared with PyTorch's, in one go, as a table of ratios:
#   bench/compare_torch.sh [SHAPES] [CONTEXT] [FATHOM] [MODES]
# 65,536 tokens per step, vocabulary 2048, head size 64, bf16. PyTorch's best mode counts. With
# TOGETHER=1 its shapes compile concurrently (and so start later) but are timed one by one.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
shapes=${1:-6x128,6x256,12x256,12x512,12x768,24x1024}
context=${2:-1024}
fathom=${3:-$here/../build/release/fathom}
modes=${4:-reduce-overhead}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$fathom" bench train --device cuda --precision bf16 --shapes "$shapes" --context "$context" \
  --batch $((65536 / context)) --vocab 2048 --head-size 64 --activation gelu_tanh --seconds 2 \
  --json > "$work/fathom.json"
if [[ -n ${TOGETHER:-} ]]; then
  IFS=, read -ra each <<< "$shapes"
  for mode in $modes; do
    mkdir "$work/$mode"
    for shape in "${each[@]}"; do
      python3 "$here/torch_gpu_step.py" "$shape" --context "$context" --mode "$mode" \
        --company "$work/$mode" --of ${#each[@]} >> "$work/torch.jsonl" 2>> "$work/torch.log" &
    done
    wait
  done
  modes=
fi
for mode in $modes; do
  python3 "$here/torch_gpu_step.py" "$shapes" --context "$context" --mode "$mode" \
    >> "$work/torch.jsonl" 2> "$work/torch.log" || tail -3 "$work/torch.log" >&2
done
python3 "$here/compare_torch.py" "$work/fathom.json" "$work/torch.jsonl"

#!/usr/bin/env bash
# Training speed on this CPU against PyTorch (Debian's python3-torch, BLIS preloaded), in one go.
#
#   bench/compare_torch_cpu.sh [SHAPES] [SECONDS per shape] [THREADS]
#
# Same shapes, batch 16 x 256 tokens, vocabulary 1000, tied embeddings, GELU, AdamW; best step of
# each. Every shape runs in three processes of its own, one after the other (PyTorch, f32, bf16), so
# that peak memory is that of one process and slow changes of the machine affect all three alike.
# Needs python3-torch and libblis4-openmp; set FATHOM to another binary if you like.
set -euo pipefail
cd "$(dirname "$0")/.."
shapes=${1:-2x64,4x128,6x192,6x256,12x256,12x384}
seconds=${2:-8}
threads=${3:-2}
fathom=${FATHOM:-build/release/fathom}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

blis=/usr/lib/x86_64-linux-gnu/blis-openmp/libblas.so.3
[[ -e $blis ]] || { echo "BLIS is missing: apt-get install libblis4-openmp" >&2; exit 1; }

for shape in ${shapes//,/ }; do
  LD_PRELOAD=$blis BLIS_NUM_THREADS=$threads OMP_NUM_THREADS=$threads \
    /usr/bin/python3 bench/torch_cpu_step.py --shapes "$shape" --seconds "$seconds" \
    --threads "$threads" >"$work/$shape.torch"
  for precision in f32 bf16; do
    "$fathom" bench train --shapes "$shape" --seconds "$seconds" --threads "$threads" \
      --precision "$precision" --json >"$work/$shape.$precision"
  done
done
/usr/bin/python3 bench/compare_torch_cpu.py "$work" "$shapes"

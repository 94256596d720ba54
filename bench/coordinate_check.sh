#!/usr/bin/env bash
# Sizes and movements of activations against width and depth, standard and CompleteP.
#
#   bench/coordinate_check.sh OUT [THREADS]
#
# Ten steps of every shape at three learning rates; tables on stdout, the picture in OUT/coordinates.svg.
# The reference check of CompleteP has the same settings: head size 64, base depth 2, ten steps.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$1 threads=${2:-$(nproc)}
fathom=${FATHOM:-build/release/fathom}
widths=${WIDTHS:-64,128,256,512} depths=${DEPTHS:-2,4,8,16,32}
rates=${RATES:-"0.0005 0.002 0.008"}
mkdir -p "$out"
cat >"$out/check.toml" <<TOML
[data]
tokens = "none"
[model]
layers = 2
width = 128
heads = 4
context = 64
vocab = 256
base_width = 64
base_layers = 2
[train]
batch = 8
threads = $threads
TOML
for parametrisation in standard completep; do
  for rate in $rates; do
    "$fathom" train "$out/check.toml" --coord-check --widths "$widths" --depths "$depths" --json \
      --set "model.parametrisation=$parametrisation" --set "train.learning_rate=$rate" \
      >"$out/${parametrisation}_$rate.json"
  done
done
/usr/bin/python3 bench/transfer_page.py coordinates "$out" "$out/coordinates.svg"

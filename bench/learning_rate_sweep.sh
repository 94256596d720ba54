#!/usr/bin/env bash
# Best learning rate against width and depth, standard parametrisation and CompleteP.
#
#   bench/learning_rate_sweep.sh TOKENS OUT [JOBS] [STEPS]
#
# Trains every shape at learning rates a factor 2 apart, JOBS models at a time, and writes
# OUT/sweep.csv (parametrisation, layers, width, learning rate, held-out loss, outcome), the table
# of a results page to OUT/sweep.md and its picture to OUT/sweep.svg. The base of widths and depths
# is the smallest shape, 2 x 64. A run that is already there is not trained again.
#
# Environment: DEVICE (cpu or cuda), PRECISION (f32 or bf16), SHAPES, RATES, BATCH, CONTEXT, FATHOM.
set -euo pipefail
cd "$(dirname "$0")/.."
tokens=$1 out=$2 jobs=${3:-$(nproc)} steps=${4:-300}
fathom=${FATHOM:-build/release/fathom}
shapes=${SHAPES:-"16x256 16x128 8x128 4x128 2x256 16x64 2x64"}
rates=${RATES:-"0.0005 0.001 0.002 0.004 0.008 0.016 0.032"}
# Passed only when requested: a build without devices has no such key.
device=${DEVICE:+--set train.device=$DEVICE}
mkdir -p "$out"

cat >"$out/sweep.toml" <<TOML
[data]
tokens = "$tokens"
eval_tokens = 60000
[model]
layers = 2
width = 64
heads = 2
context = ${CONTEXT:-128}
activation = "gelu_tanh"
init_std = 0.08
base_width = 64
base_layers = 2
[train]
steps = $steps
batch = ${BATCH:-8}
warmup = $((steps / 10))
schedule = "cosine"
weight_decay = 0.1
threads = 1
precision = "${PRECISION:-f32}"
TOML

train_one() { # PARAMETRISATION SHAPE RATE
  local layers=${2%x*} width=${2#*x} name="$1_$2_$3" record
  [[ -s $out/$name.csv ]] && return
  # shellcheck disable=SC2086
  record=$("$fathom" train "$out/sweep.toml" --out "$out/$name" --json $device \
    --set "model.parametrisation=$1" --set "model.layers=$layers" --set "model.width=$width" \
    --set "model.heads=$((width / 32))" --set "train.learning_rate=$3" 2>"$out/$name.log") ||
    { echo "$name: $(tail -n 1 "$out/$name.log")" >&2; return 1; }
  local loss outcome
  loss=$(sed -n 's/.*"final_loss": \([^,]*\).*/\1/p' <<<"$record")
  outcome=$(sed -n 's/.*"outcome": "\([a-z]*\)".*/\1/p' <<<"$record")
  echo "$1,$layers,$width,$3,$loss,$outcome" >"$out/$name.csv"
  rm -rf "${out:?}/$name" "$out/$name.log"
}
export -f train_one
export out fathom device

# Longest first, so that the last cores are not left with the largest models.
for shape in $shapes; do
  for rate in $rates; do
    for parametrisation in standard completep; do echo "$parametrisation $shape $rate"; done
  done
done | xargs -P "$jobs" -L 1 bash -c 'train_one "$@"' _

{ echo "parametrisation,layers,width,learning_rate,loss,outcome"; cat "$out"/*x*_*.csv; } >"$out/sweep.csv"
/usr/bin/python3 bench/transfer_page.py sweep "$out/sweep.csv" "$out/sweep.svg" | tee "$out/sweep.md"

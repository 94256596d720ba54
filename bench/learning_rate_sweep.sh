#!/usr/bin/env bash
# Best learning rate against width and depth, standard parametrisation beside CompleteP.
#
#   bench/learning_rate_sweep.sh TOKENS OUT [JOBS] [STEPS]
#
# Trains every shape at learning rates a factor 2 apart, one model per core, and writes
# OUT/sweep.csv (parametrisation, layers, width, learning rate, held-out loss, outcome). The widths'
# and depths' base is the smallest shape, 2 x 64.
set -euo pipefail
tokens=$1 out=$2 jobs=${3:-$(nproc)} steps=${4:-300}
fathom=${FATHOM:-build/release/fathom}
shapes=${SHAPES:-"16x256 16x128 8x128 4x128 2x256 16x64 2x64"}
rates=${RATES:-"0.0005 0.001 0.002 0.004 0.008 0.016 0.032"}
mkdir -p "$out"

cat >"$out/sweep.toml" <<TOML
[data]
tokens = "$tokens"
eval_tokens = 60000
[model]
layers = 2
width = 64
heads = 2
context = 128
activation = "gelu_tanh"
base_width = 64
base_layers = 2
[train]
steps = $steps
batch = 8
warmup = $((steps / 10))
schedule = "cosine"
weight_decay = 0.1
threads = 1
TOML

train_one() { # PARAMETRISATION SHAPE RATE
  local layers=${2%x*} width=${2#*x} name="$1_$2_$3"
  "$fathom" train "$out/sweep.toml" --out "$out/$name" --json \
    --set "model.parametrisation=$1" --set "model.layers=$layers" --set "model.width=$width" \
    --set "model.heads=$((width / 32))" --set "train.learning_rate=$3" 2>/dev/null |
    sed -n 's/.*"final_loss": \([^,]*\),/\1/p; s/.*"outcome": "\(.*\)",/\1/p' | tr '\n' ' ' |
    awk -v p="$1" -v l="$layers" -v w="$width" -v r="$3" '{print p","l","w","r","$2","$1}' \
      >"$out/$name.csv"
}
export -f train_one
export out fathom

# Longest first, so that the last cores are not left with the largest models.
for shape in $shapes; do
  for rate in $rates; do
    for parametrisation in standard completep; do echo "$parametrisation $shape $rate"; done
  done
done | xargs -P "$jobs" -L 1 bash -c 'train_one "$@"' _

{ echo "parametrisation,layers,width,learning_rate,loss,outcome"; cat "$out"/*x*_*.csv; } >"$out/sweep.csv"
awk -F, 'NR > 1 && $5 != "null" { key = $1 " " $2 "x" $3
  if (!(key in best) || $5 < best[key]) { best[key] = $5; rate[key] = $4 } }
  END { for (key in best) printf "%-22s best rate %-7s loss %.4f\n", key, rate[key], best[key] }' \
  "$out/sweep.csv" | sort

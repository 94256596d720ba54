#!/usr/bin/env bash
# Block Influence and all single-layer removals of one LLaMA folder by Fathom and by a plain PyTorch
# script (probe_torch.py), on the same ids and device, one after the other: times, their ratio and
# the largest difference of any number.
#
#   bench/compare_probe.sh FOLDER IDS [cpu|cuda] [THREADS]
#
# bench/probe_folder.py makes a folder and ids. Needs PyTorch; PYTHON and PROBE_REMOVALS select
# other programs. On a CPU, BLIS is preloaded where it is installed: Debian's default BLAS is slow.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
(($# >= 2)) || { sed -n '2,10p' "$0" >&2; exit 2; }
folder=$1 ids=$2 device=${3:-cpu} threads=${4:-$(nproc)}
python=${PYTHON:-python3}
ours=${PROBE_REMOVALS:-$here/../build/release/probe_removals}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

blis=/usr/lib/x86_64-linux-gnu/blis-openmp/libblas.so.3
preload=
[[ $device == cpu && -e $blis ]] && preload=$blis
"$ours" "$folder" "$ids" "$device" "$threads" >"$work/fathom.json"
LD_PRELOAD=$preload BLIS_NUM_THREADS=$threads OMP_NUM_THREADS=$threads \
  "$python" "$here/probe_torch.py" "$folder" "$ids" --device "$device" --threads "$threads" \
  >"$work/torch.json"
"$python" - "$work/fathom.json" "$work/torch.json" <<'PY'
import json, sys
ours, theirs = (json.load(open(path)) for path in sys.argv[1:])
apart = lambda key: max(abs(a - b) for a, b in zip(ours[key], theirs[key]))
print(f"{'':28}{'fathom':>12}{'PyTorch ' + theirs['torch'].split('+')[0]:>18}")
print(f"{'BI and all removals, s':28}{ours['seconds']:12.3f}{theirs['seconds']:18.3f}")
print(f"{'loss, nats':28}{ours['loss']:12.6f}{theirs['loss']:18.6f}")
print(f"ratio {theirs['seconds'] / ours['seconds']:.2f}; largest difference of a removal "
      f"{apart('removal'):.1e} nats, of a BI {apart('bi'):.1e}")
print(f"one pass {ours['pass_seconds']:.3f} s; removals cost {ours['passes']:.2f} passes "
      f"({ours['processor_passes']:.2f} of processor time), allowed "
      f"{ours['allowed_passes']:.1f} ({ours['layer_runs']:.0f} layer runs of {ours['layers']})")
PY

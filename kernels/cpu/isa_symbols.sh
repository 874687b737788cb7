#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# isa_symbols.sh AVX2.a AVX512.a: fails if the two libraries define a symbol of the same name. The
# linker would keep one copy of it, perhaps the AVX-512 one, and an AVX2 machine would die of it.
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
nm --defined-only "$1" | awk 'NF == 3 && $2 ~ /[A-Z]/ {print $3}' | grep -v "^DW\.ref\." | sort -u > "$tmp/a"
nm --defined-only "$2" | awk 'NF == 3 && $2 ~ /[A-Z]/ {print $3}' | grep -v "^DW\.ref\." | sort -u > "$tmp/b"
test -s "$tmp/a"
shared=$(comm -12 "$tmp/a" "$tmp/b")
if [ -n "$shared" ]; then
  echo "defined in both instruction sets:" "$shared" >&2
  exit 1
fi

# SPDX-License-Identifier: Apache-2.0
#
# What the commands of the README share: packages, configuring, building. Source it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf '== %s\n' "$*"; }

# For commands that take no arguments: refuses those of the command.
refuse_arguments() {
  [ $# -gt 0 ] || return 0
  echo "error: $0 takes no arguments, not '$1'" >&2
  exit 2
}

# The packages of lists, comments removed.
listed_packages() { sed 's/#.*//' "$@" | awk 'NF { print $1 }'; }

# Those of the arguments that are not installed.
missing_packages() {
  local package
  for package in "$@"; do
    dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed ||
      echo "$package"
  done
}

# Runs a command as root; fails if that would need a password.
as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

# require_packages [LIST...]: installs what is missing of the lists, by default of all. Exit 69 with one line if that is
# not possible.
require_packages() {
  local missing log
  [ $# -gt 0 ] || set -- scripts/packages.txt scripts/packages-tests.txt
  if ! command -v dpkg-query apt-get >/dev/null; then
    echo "error: this is no Debian system; install the equivalents of $*" >&2
    exit 69
  fi
  mapfile -t missing < <(missing_packages $(listed_packages "$@"))
  [ ${#missing[@]} -gt 0 ] || return 0
  if ! as_root true 2>/dev/null; then
    echo "error: packages are missing and installing needs root; run: sudo apt-get install ${missing[*]}" >&2
    exit 69
  fi
  say "installing ${#missing[@]} Debian packages: ${missing[*]}"
  log=$(mktemp)
  if ! { as_root apt-get update -q &&
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends \
      "${missing[@]}"; } >"$log" 2>&1; then
    tail -n 5 "$log" >&2
    echo "error: apt-get could not install: ${missing[*]} (whole log: $log)" >&2
    exit 69
  fi
  rm -f "$log"
}

# Uses ccache where it is installed. Its settings are part of the command, so that ninja alone uses them, too: objects do
# not depend on the place of the checkout, those that take a precompiled header are kept, and a file is hashed once.
use_ccache() {
  command -v ccache >/dev/null || return 0
  local cache="env CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_INODECACHE=1 ccache"
  export CC="${CC:-$cache gcc}" CXX="${CXX:-$cache g++}"
}

# configure_tree DIR [meson option...]: configures DIR, or configures it again.
configure_tree() {
  local dir=$1 again='' log
  shift
  use_ccache
  [ -f "$dir/build.ninja" ] && again=--reconfigure
  log=$(mktemp)
  say "configuring $dir"
  meson setup $again "$dir" "$@" >"$log" 2>&1 || { cat "$log" >&2; rm -f "$log"; exit 1; }
  rm -f "$log"
}

# What tests and bundles ask for: kernels for other CPUs and GPUs than this machine's, too.
all_kernels=(-Dcpu_isas=avx2,avx512 -Dgpu_archs=80,90)

# build_tree DIR [MESON-OPTION...] [TARGET...]: configures DIR and builds the targets, or everything. No option changes
# how a file is compiled, so that nobody compiles again what another command has compiled.
build_tree() {
  local dir=$1 quiet=--quiet options=()
  shift
  while [[ "${1:-}" == -D* ]]; do options+=("$1") && shift; done
  configure_tree "$dir" -Dwerror=true "${options[@]}"
  say "building $dir (a few minutes the first time)"
  [ -t 1 ] && quiet=''
  ninja -C "$dir" $quiet "$@"
}

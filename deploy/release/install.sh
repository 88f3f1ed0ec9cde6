#!/bin/sh
# Installs gatehouse @VERSION@: finds the archive for this system, checks it against
# the release's checksums, and puts the program into a folder.
#
#   curl -fsSL https://github.com/gatehouse-dev/gatehouse/releases/latest/download/install.sh | sh
#
# GATEHOUSE_BASE     the URL of the artifacts, @BASE@ by default
# GATEHOUSE_INSTALL  the folder, /usr/local/bin by default; ~/.local/bin if that is not writable
set -eu

fail() {
  echo "install.sh: $*" >&2
  exit 1
}

# The whole script is a function, so a truncated download runs nothing.
main() {
  version=@VERSION@
  base=${GATEHOUSE_BASE:-@BASE@}

  case $(uname -s) in
  Linux) system=linux ;;
  Darwin) system=darwin ;;
  *) fail "there is no archive for $(uname -s) here; for Windows, take the .zip of $base" ;;
  esac
  case $(uname -m) in
  x86_64 | amd64) arch=amd64 ;;
  aarch64 | arm64) arch=arm64 ;;
  *) fail "there is no archive for $(uname -m)" ;;
  esac
  folder=gatehouse_${version}_${system}_${arch}

  to=${GATEHOUSE_INSTALL:-}
  if [ -z "$to" ]; then
    to=/usr/local/bin
    [ -w "$to" ] || to=$HOME/.local/bin
  fi

  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  trap 'exit 1' HUP INT TERM
  fetch "$base/$folder.tar.gz" "$work/$folder.tar.gz"
  fetch "$base/SHA256SUMS" "$work/SHA256SUMS"

  want=$(awk -v name="$folder.tar.gz" '$2 == name { print $1 }' "$work/SHA256SUMS")
  [ -n "$want" ] || fail "$base/SHA256SUMS has no line for $folder.tar.gz; nothing was installed"
  got=$(sum "$work/$folder.tar.gz")
  [ "$got" = "$want" ] || fail "$folder.tar.gz has the checksum $got, not $want; nothing was installed"

  tar -xzf "$work/$folder.tar.gz" -C "$work"
  mkdir -p "$to"
  # The file is replaced by renaming, because a server may be running the old one.
  cp "$work/$folder/gatehouse" "$to/.gatehouse.$$"
  chmod 0755 "$to/.gatehouse.$$"
  mv -f "$to/.gatehouse.$$" "$to/gatehouse"
  echo "Installed $("$to/gatehouse" --version) as $to/gatehouse"
  case ":$PATH:" in
  *":$to:"*) ;;
  *) echo "$to is not in PATH." ;;
  esac
}

fetch() {
  if command -v curl >/dev/null; then
    curl -fsSL --retry 3 -o "$2" "$1" || fail "cannot get $1; nothing was installed"
  elif command -v wget >/dev/null; then
    wget -q -O "$2" "$1" || fail "cannot get $1; nothing was installed"
  else
    fail "needs curl or wget"
  fi
}

sum() {
  if command -v sha256sum >/dev/null; then
    sha256sum "$1" | cut -d ' ' -f 1
  elif command -v shasum >/dev/null; then
    shasum -a 256 "$1" | cut -d ' ' -f 1
  else
    fail "needs sha256sum or shasum; nothing was installed"
  fi
}

main

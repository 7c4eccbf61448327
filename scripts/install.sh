#!/bin/sh
# Installs what is missing of the Debian packages that a file lists, one a line; or, with --node, a
# Node.js with npm where there is none. Says nothing when there is nothing to do.
set -eu

install() {
  sudo=""
  [ "$(id -u)" -eq 0 ] || sudo="sudo"
  export DEBIAN_FRONTEND=noninteractive
  $sudo apt-get update -qq
  # shellcheck disable=SC2086 — a list of names
  $sudo apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=300 $1
}

if [ "$1" = "--node" ]; then
  if ! command -v node >/dev/null 2>&1 || ! command -v npm >/dev/null 2>&1; then
    install "nodejs npm"
  fi
  exit 0
fi

missing=""
for package in $(sed 's/#.*//' "$1"); do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
done
[ -z "$missing" ] && exit 0
echo "installing:$missing"
install "$missing"

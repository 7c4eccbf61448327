#!/bin/sh
# Makes the npm package: pack.sh PORTABLE_DIR OUT_DIR VERSION. The result is OUT_DIR/orrery-VERSION.tgz.
set -eu

if [ $# -ne 3 ]; then
  echo "usage: pack.sh PORTABLE_DIR OUT_DIR VERSION" >&2
  exit 2
fi
portable=$1
version=$3
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$2"
out=$(cd "$2" && pwd)

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
cp -R "$here/bin" "$here/index.js" "$here/index.d.ts" "$here/program.js" "$here/README.md" "$stage"
cp "$portable/LICENSE" "$stage"
# npm leaves links out of a package: what they lead to takes their place.
cp -RL "$portable" "$stage/portable"
sed "s/\"version\": \"0\.0\.0\"/\"version\": \"$version\"/" "$here/package.json" > "$stage/package.json"
# The modes of the package are those of these files, and installing keeps them.
chmod -R u=rwX,go=rX "$stage"

cd "$stage"
npm pack --silent --ignore-scripts --pack-destination "$out" > /dev/null
ls -l "$out/orrery-$version.tgz"

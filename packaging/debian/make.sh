#!/bin/sh
# Makes the Debian packages of a CMake release build, without compiling anything again:
# make.sh BUILD_DIR OUT_DIR.
#
# The build directory has the targets orrery, orrery_client_archive, orrery_processor_archive and orrery_shared. The
# same build, at the same SOURCE_DATE_EPOCH (default: the time of the last commit), gives the same bytes.
set -eu

if [ $# -ne 2 ]; then
  echo "usage: make.sh BUILD_DIR OUT_DIR" >&2
  exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
ORRERY_SOURCE_DIR=$(dirname "$(dirname "$here")")
ORRERY_BUILD_DIR=$(cd "$1" && pwd)
mkdir -p "$2"
out=$(cd "$2" && pwd)
ORRERY_VERSION=$(sed -n 's/^project(orrery VERSION \([0-9.]*\).*/\1/p' "$ORRERY_SOURCE_DIR/CMakeLists.txt")
case "$("$ORRERY_BUILD_DIR/orrery" --version)" in
  "orrery $ORRERY_VERSION" | "orrery $ORRERY_VERSION "*) ;;
  *) echo "make.sh: $ORRERY_BUILD_DIR/orrery is not version $ORRERY_VERSION: build it first" >&2; exit 1 ;;
esac
: "${SOURCE_DATE_EPOCH:=$(git -C "$ORRERY_SOURCE_DIR" log -1 --format=%ct)}"
export ORRERY_SOURCE_DIR ORRERY_BUILD_DIR ORRERY_VERSION SOURCE_DATE_EPOCH

# dpkg wants debian/ at the top of a tree, and writes into it: the checkout stays as it is.
work=$(mktemp -d "${TMPDIR:-/tmp}/orrery-deb.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/orrery"
cp -R "$here" "$work/orrery/debian"
rm "$work/orrery/debian/make.sh"
cat > "$work/orrery/debian/changelog" << END
orrery ($ORRERY_VERSION) unstable; urgency=medium

  * /usr/share/doc/orrery/changelog.gz says what is new.

 -- The Orrery Authors <noreply@orrery.example>  $(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")
END

cd "$work/orrery"
# Not from the environment of whoever calls: a group that may write would be one in the packages, too.
umask 022
dpkg-buildpackage --build=binary --no-sign > ../log 2>&1 || { cat ../log >&2; exit 1; }
cd ..
ls *.deb
mv *.deb "$out"

#!/bin/sh
# Runs unit tests of a sanitizer's build directory: run.sh BUILD_DIRECTORY REGEX. Skipped (77) where
# they were not built, which `make test` does.
set -eu
if ! [ -x "$1/bin/storage_tests" ]; then
  echo "skipped: $1 is not built (make sanitized builds it)"
  exit 77
fi
# Without those that open a store for every byte of a log, most of the time of all: RocksDB is not
# instrumented, and wal_scan_fuzz goes over the same code. `make asan` and `make tsan` run them too.
export GTEST_FILTER="-StoreDamageTest.*EveryByte*:StoreDamageTest.ATailOfGarbage*:StoreDamageTest.AManifest*:StoreTest.CursorsKeep*"
cd "$1"
exec ctest --output-on-failure --no-tests=error -R "$2"

#!/bin/sh
# Runs every fuzz target for so many seconds, beginning with its corpus; stops at the first finding.
# Inputs that reach new code are kept in the build directory, findings too.
set -eu
build=$1
seconds=$2
corpus=$(dirname "$0")/corpus
for target in "$build"/bin/*_fuzz; do
  name=$(basename "$target")
  mkdir -p "$build/corpus/$name" "$build/findings"
  echo "── $name, $seconds s"
  "$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
    -verbosity=0 -artifact_prefix="$build/findings/$name-" "$build/corpus/$name" "$corpus/$name" \
    2> "$build/findings/$name.txt" || { tail -n 60 "$build/findings/$name.txt"; exit 1; }
  grep -E 'number_of_executed_units' "$build/findings/$name.txt"
done
echo "no findings"

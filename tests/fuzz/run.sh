#!/bin/sh
# run.sh BUILD_DIRECTORY SECONDS [JOBS]: runs every fuzz target for so many seconds, so many at a time, beginning with
# its corpus. Inputs that reach new code are kept in the build directory, findings too.
set -eu
if [ "$1" = --target ]; then
  target=$2
  seconds=$3
  build=$(dirname "$(dirname "$target")")
  corpus=$(dirname "$0")/corpus
  name=$(basename "$target")
  log=$build/findings/$name.txt
  mkdir -p "$build/corpus/$name"
  "$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
    -verbosity=0 -artifact_prefix="$build/findings/$name-" "$build/corpus/$name" "$corpus/$name" \
    2> "$log" || { echo "── $name: a finding"; tail -n 60 "$log"; exit 255; }  # 255: xargs begins no other one
  echo "── $name, $seconds s: $(awk '/number_of_executed_units/ { print $2 }' "$log") inputs"
  exit 0
fi
mkdir -p "$1/findings"
printf '%s\n' "$1"/bin/*_fuzz | xargs -P "${3:-1}" -I '{}' sh "$0" --target '{}' "$2"
echo "no findings"

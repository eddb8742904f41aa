#!/usr/bin/env bash
# All measurements of docs/benchmarks.md.
#
#   bash tests/bench/run.sh WORK PHOTOS [ROUNDS]
#
# PHOTOS is a tree of class folders with JPEG files. WORK takes data sets, packed outputs, the rivals' Python environment and the results
# (WORK/results/*.json, *.md). Builds the default preset first. Have nothing else running.
set -euo pipefail
[ $# -ge 2 ] || { sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2; }
work=$(realpath -m "$1")
photos=$(realpath "$2")
rounds=${3:-5}
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. samples/setup.sh
results=$work/results
mkdir -p "$results"

# The rivals live in an environment of their own that sees torch and Pillow of the private one.
python=$work/venv/bin/python3
if [ ! -e "$work/venv/rivals.stamp" ]; then
  "$SHARDPACK_PYTHON" -m venv "$work/venv"
  "$SHARDPACK_PYTHON" -c 'import site; print(site.getsitepackages()[0])' >"$("$python" -c 'import site; print(site.getsitepackages()[0])')/private.pth"
  pip=("$python" -m pip install -q --disable-pip-version-check --no-input)
  for rival in array-record lmdb tfrecord; do
    "${pip[@]}" "$rival" || echo "run.sh: $rival could not be installed" >&2
  done
  "${pip[@]}" --no-deps "torchvision==0.26.*" || echo "run.sh: torchvision could not be installed" >&2
  touch "$work/venv/rivals.stamp"
fi

cmake --preset default
cmake --build --preset default --target shardpack shardinfo bench_read_random bench_load_photos
"$SHARDPACK_PYTHON" tests/bench/make_data.py --photos "$photos" "$work/data"

report() {
  tee "$results/$1.log"
  sed -n '/^|/p' "$results/$1.log" >"$results/$1.md"
}

{
  echo "cores: $(nproc), memory: $(awk '/MemTotal/ {printf "%.0f GiB", $2 / 1048576}' /proc/meminfo)"
  echo "processor: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)"
  "$python" -m pip list --disable-pip-version-check 2>/dev/null | grep -i -E '^(array[-_]record|lmdb|tfrecord|torchvision|torch|pillow|numpy) ' || true
} | tee "$results/machine.txt"

for set in in1k in10k tiny50k; do
  printf '\n== packing %s\n' "$set"
  "$python" tests/bench/pack_bench.py "$work/data/$set" "$work/packing" --shardpack build/bin/shardpack \
    --rounds "$rounds" --json "$results/pack_$set.json" 2>&1 | report "pack_$set"
done

for what in "resume $work/data/in10k" "lossless $work/data/in1k" scan memory; do
  printf '\n== %s\n' "$what"
  # shellcheck disable=SC2086  # a data set is a word of its own
  "$python" tests/bench/convert_bench.py $what "$work/converting" --shardpack build/bin/shardpack \
    --rounds "$rounds" --json "$results/convert_${what%% *}.json" 2>&1 | report "convert_${what%% *}"
done

for set in tiny50k in10k; do
  build/bin/shardpack convert "$work/data/$set" -o "$work/packed/$set" --overwrite --verify-images header --progress none >/dev/null
done
printf '\n== reading tiny50k at random\n'
build/bin/bench_read_random "$work/packed/tiny50k" "$rounds" | tee "$results/read_random.jsonl"
printf '\n== loading in10k\n'
"$python" tests/bench/load_bench.py "$work/data/in10k" "$work/packed/in10k" --loader build/bin/bench_load_photos \
  --rounds "$rounds" --json "$results/load_in10k.json" 2>&1 | report load_in10k
echo "tables: $results"

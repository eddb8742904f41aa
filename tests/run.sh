#!/usr/bin/env bash
# Installs what is missing, builds every preset and runs its tests.
#
#   bash tests/run.sh [PRESET...]     default: default minimal asan tsan
#
# The default preset is what users build, and all tests run on it. minimal is built without HDF5, LibTorch and CUDA. Under the address and
# undefined-behaviour sanitizers run the tests of what reads untrusted bytes, under the thread sanitizer those of what runs in parallel (test_plan
# makes its inputs in tasks of a TBB that the sanitizer cannot look into; plans are made by test_pack as well).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. samples/setup.sh

presets=("$@")
[ ${#presets[@]} -gt 0 ] || presets=(default minimal asan tsan)
SECONDS=0

# What of the tests runs under a preset, as arguments of ctest, and what those need, as arguments of the build. A test whose program is
# not among the targets fails as not found.
tests_of() {
  case $1 in
    asan) echo "--tests-regex ^(store|image|pack|plan|codec_choice|rewrite|archives|sources|loader)" ;;
    tsan) echo "--tests-regex ^(pack|archives_read|sources|loader)" ;;
  esac
}
targets_of() {
  case $1 in
    asan) echo "--target test_store test_image image_probe test_pack test_plan test_codec_choice test_rewrite test_archives test_sources source_probe test_loader" ;;
    tsan) echo "--target test_pack test_sources source_probe test_loader" ;;
  esac
}

for preset in "${presets[@]}"; do
  printf '\n==== %s: configure and build  (%d s so far)\n' "$preset" "$SECONDS"
  cmake --preset "$preset"
  # shellcheck disable=SC2046  # several words are meant
  cmake --build --preset "$preset" $(targets_of "$preset")
  printf '\n==== %s: tests  (%d s so far)\n' "$preset" "$SECONDS"
  # shellcheck disable=SC2046
  ctest --preset "$preset" -j2 --no-tests=error --output-on-failure $(tests_of "$preset") </dev/null
done
printf '\nAll tests passed: %s  (%d s)\n' "${presets[*]}" "$SECONDS"

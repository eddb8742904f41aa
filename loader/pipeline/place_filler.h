// Fills one place of a batch, whatever its record turns out to be.
#pragma once

#include <cstdint>

#include "loader/decode/sample_decoder.h"
#include "loader/order/operations.h"
#include "loader/pipeline/engine.h"
#include "loader/pipeline/slot.h"

namespace shardpack::loader {

// What the places filled in one go left to be told: handed over once a chunk, so that tasks share nothing meanwhile.
struct ChunkResult {
  StageCosts costs;
  std::vector<BadPlace> bad;
  std::exception_ptr error;
  std::uint32_t error_place = 0;
};

// Writes image, label, indices and validity of place `k` of `slot`. A bad record follows the policy: see OnBadRecord;
// at a padding place it is masked or substituted without a word, for the sample itself is told of where it is valid.
// Adds to `result`; never throws.
void FillPlace(const Engine& engine, std::uint64_t epoch, std::uint64_t sample, std::uint32_t k, Batch::Slot& slot,
               SampleDecoder& decoder, ChunkResult& result);

// Uniform in [0, n) from two draws; n > 0.
std::uint64_t DrawBelow(Philox& random, std::uint64_t n);

}  // namespace shardpack::loader

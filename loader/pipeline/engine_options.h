// Options of the loader checked and made definite.
#pragma once

#include "loader/pipeline/engine.h"

namespace shardpack::loader {

// One look at each file the manifest names: that a whole shard is missing or cut is known before training, for nobody
// wants to train on stand-ins for it. Throws Error with kNotFound or kCorruption naming the shard.
void CheckShards(const Dataset& dataset);

// Fills in threads, allocator and the output's size. Throws Error with kInvalidArgument, naming the option.
LoaderOptions Definite(LoaderOptions options, const Dataset& dataset);

// Fits prefetch_depth and held_batches into memory_bytes; says so through `warn` where it had to reduce them. Throws
// Error with kInvalidArgument where not even one batch fits.
RingSize FitRing(const LoaderOptions& options, const Dataset& dataset, std::size_t slot_bytes);

}  // namespace shardpack::loader

// Options of the loader checked and made definite.
#pragma once

#include "loader/pipeline/engine.h"

namespace shardpack::loader {

// Fills in threads, allocator and the output's size. Throws Error with kInvalidArgument, naming the option.
LoaderOptions Definite(LoaderOptions options, const Dataset& dataset);

// Fits prefetch_depth and held_batches into memory_bytes; says so through `warn` where it had to reduce them. Throws
// Error with kInvalidArgument where not even one batch fits.
RingSize FitRing(const LoaderOptions& options, const Dataset& dataset, std::size_t slot_bytes);

}  // namespace shardpack::loader

// Labels of every kind.
#pragma once

#include <cstdint>
#include <string>

#include "shardpack/dataset.h"
#include "shardpack/manifest.h"
#include "shardpack/record.h"

namespace shardpack {

// A record's label as JSON, exactly as it was given: "3", "[1,5,7]", "0.25". Of kList and kFloat it stands in the
// record's metadata. Throws Error with kCorruption where it does not.
std::string LabelText(LabelKind kind, std::int64_t label, Bytes metadata);

// Precondition: index < dataset.size().
std::string LabelText(const Dataset& dataset, std::uint64_t index);

}  // namespace shardpack

// What tells two requests apart: everything that is written depends on what is hashed here, and on the inputs' bytes.
#pragma once

#include <cstdint>
#include <string>

#include "libshard/pack/plan_file.h"
#include "libshard/pack/plan_labels.h"
#include "libshard/store/checksum.h"

namespace shardpack {

// Of options, name, classes, label kind, whether a dataset is added to, and each input's key, size, label, metadata and
// whether it is bad. Not of paths, threads or times.
class RequestDigester {
 public:
  RequestDigester(const PackOptions& options, const LabelBook& labels, const PlanBase* base);
  void Add(const PlannedInput& input);  // in the order of the plan
  Digest128 Finish(std::uint64_t num_inputs);

 private:
  void FlushAbove(std::size_t bytes);

  Xxh3Stream128 digest_;
  std::string buffer_;
};

}  // namespace shardpack

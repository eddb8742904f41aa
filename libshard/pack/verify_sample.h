// Verifying a sample of a dataset in a given time.
#pragma once

#include "shardpack/dataset.h"
#include "shardpack/pack.h"

namespace shardpack {

// Which records are looked at, in what order: whenever one stops, the sample is spread evenly over the dataset, with
// chance inside of each of its parts. Drawn from the dataset's digest and `seed`. No record comes twice.
class SampleOrder {
 public:
  SampleOrder(std::uint64_t records, std::uint64_t seed);
  std::uint64_t size() const noexcept { return records_; }
  // The k-th. Precondition: k < size().
  std::uint64_t operator[](std::uint64_t k) const;

 private:
  std::uint64_t records_, seed_, parts_, order_step_, order_start_;
};

// The share of damaged records that is exceeded with a probability of 1 - `confidence` at most, where `damaged` of
// `sampled` were (Clopper and Pearson, one-sided). 1 for no sample.
double DamagedShareBound(std::uint64_t sampled, std::uint64_t damaged, double confidence);

// Opens every shard, then checks records of the sample until options.budget is spent or there are no more. Faults are
// in order of shard and offset. Precondition: options.budget.
void VerifySample(const std::filesystem::path& path, const VerifyOptions& options, VerifyResult& result);

}  // namespace shardpack

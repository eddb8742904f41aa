// The records that codecs are chosen by: those whose keys have the lowest hashes, so that the same request draws the
// same sample on every machine.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libshard/pack/codec_choice.h"
#include "libshard/pack/source.h"

namespace shardpack {

// An input of the sample, copied out of the plan; or its bytes, where its source is a stream.
struct SampledInput {
  std::string key, locator;
  std::uint32_t key_skip = 0, source = 0;
  std::uint64_t size = 0, sequence = 0;
  std::optional<std::vector<std::byte>> bytes;

  PlannedInput View() const;
};

// The inputs with the lowest hashes, at most 1,024 and at most 64 MiB of them (but always one): the longest beginning
// of the list sorted by hash that holds that. One thread at a time.
class LowestHashes {
 public:
  static constexpr std::size_t kMaxInputs = 1024;
  static constexpr std::uint64_t kMaxBytes = 64 << 20;

  // Whether an input of this hash may be among them yet.
  bool Wants(std::uint64_t hash) const { return hash < cut_; }
  void Add(std::uint64_t hash, SampledInput input);
  void Add(LowestHashes other);
  // Leaves a beginning of at most so many bytes (but one).
  void CutTo(std::uint64_t bytes);

  const std::map<std::pair<std::uint64_t, std::string>, SampledInput>& inputs() const { return inputs_; }

 private:
  void DropLast();

  std::map<std::pair<std::uint64_t, std::string>, SampledInput> inputs_;
  std::uint64_t bytes_ = 0;
  std::uint64_t cut_ = ~std::uint64_t{0};  // none of this hash or above is among them any more
};

// One a thread: the record that packing makes of an input. Throws Error with kBadInput.
using SampleWorker = std::function<SampleRecord(Bytes input)>;

// Reads and works the sample, on the threads of the calling task arena; inputs that fail are left out. What is larger
// and already entropy-coded is taken 64 times at most where the first of its kind show that zstd gains nothing: then
// reading and compressing a thousand photographs would cost more than it could ever bring. Throws Error with kIo where
// the system refuses every input; Interrupted.
std::vector<SampleRecord> WorkSample(const LowestHashes& sample, const std::vector<std::unique_ptr<Source>>& sources,
                                     const std::function<SampleWorker()>& make_worker, const std::atomic<bool>* stop);

}  // namespace shardpack

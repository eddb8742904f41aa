// Reads, checks, hashes and compresses inputs: the parallel half of packing.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "libshard/pack/plan.h"
#include "libshard/pack/scan.h"
#include "shardpack/error.h"
#include "shardpack/image.h"
#include "shardpack/record.h"

namespace shardpack {

// An input that was left out.
struct BadInput {
  std::string key;
  std::string source;  // its path
  std::string reason;
  std::optional<std::uint64_t> offset;
  ErrorCode code = ErrorCode::kBadInput;  // kIo where the system refused to open or read it
};

// The inputs of a batch, ready to be written. Used again and again: its buffers keep their capacity.
struct PackedBatch {
  struct Record {
    RecordInfo info;
    std::uint64_t input = 0;   // index into Inputs::list
    std::size_t position = 0;  // of the payload in `raw` or `compressed`
    bool compressed = false;
  };
  std::vector<Record> records;
  std::vector<BadInput> bad;
  std::vector<std::byte> raw, compressed;

  Bytes Payload(const Record& record) const {
    return Bytes(record.compressed ? compressed : raw).subspan(record.position, record.info.stored_bytes);
  }
};

// What all threads share while packing.
struct BatchContext {
  const Inputs& inputs;
  VerifyImages verify = VerifyImages::kDecode;
  ImageLimits limits;
  // Pictures of more decoded bytes than this are decoded one at a time, so that `memory` holds.
  std::uint64_t large_picture_bytes = 0;
  std::mutex large_picture;
  const std::atomic<bool>* stop = nullptr;
};

// One a thread.
class BatchPacker {
 public:
  explicit BatchPacker(BatchContext& context);
  ~BatchPacker();

  // Replaces `out`. Bad inputs are entries of out.bad. Throws Interrupted.
  void Pack(const InputRange& range, PackedBatch& out);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shardpack

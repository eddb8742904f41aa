#include "libshard/pack/shard_rewrite.h"

#include <algorithm>

#include "libshard/store/compression.h"
#include "libshard/store/record_block.h"
#include "shardpack/pack.h"

namespace shardpack {
namespace {

class Rewriter {
 public:
  Rewriter(const ShardReader& from, const std::vector<std::uint64_t>& dropped, const ShardRewrite& rewrite)
      : from_(from),
        dropped_(dropped),
        rewrite_(rewrite),
        writer_(rewrite.output, OptionsOf(from)),
        compressor_(rewrite.zstd_level) {}

  ShardSummary Run() {
    for (std::uint64_t i = 0; i < from_.num_records();) {
      if (rewrite_.stop != nullptr && *rewrite_.stop) throw Interrupted{};
      const RecordInfo info = from_.Info(i);
      const std::uint64_t end = info.codec == Codec::kZstdBlock ? EndOfBlock(i, info) : i + 1;
      if (info.codec == Codec::kZstdBlock) {
        CopyBlock(i, end);
      } else if (!IsDropped(i)) {
        from_.ReadStored(i, stored_);
        writer_.Append(Record(i, info, stored_));
      }
      if (rewrite_.progress) rewrite_.progress(end - i, info.stored_bytes);
      i = end;
    }
    return writer_.Finish();
  }

 private:
  static ShardWriterOptions OptionsOf(const ShardReader& from) {
    ShardWriterOptions options;
    options.sync_marker = from.sync_marker();
    options.class_names = from.class_names();
    const Bytes dictionary = from.Dictionary();
    options.dictionary.assign(dictionary.begin(), dictionary.end());
    return options;
  }

  bool IsDropped(std::uint64_t i) const { return std::binary_search(dropped_.begin(), dropped_.end(), i); }

  RecordToWrite Record(std::uint64_t i, const RecordInfo& info, Bytes payload) const {
    return {info, from_.Key(i), payload, from_.Metadata(i), from_.SideData(i)};
  }

  std::uint64_t EndOfBlock(std::uint64_t begin, const RecordInfo& info) const {
    std::uint64_t end = begin + 1;
    while (end < from_.num_records() && from_.Info(end).offset == info.offset) ++end;
    return end;
  }

  void CopyBlock(std::uint64_t begin, std::uint64_t end) {
    std::vector<RecordToWrite> records;
    for (std::uint64_t i = begin; i < end; ++i) {
      if (!IsDropped(i)) records.push_back(Record(i, from_.Info(i), {}));
    }
    if (records.empty()) return;
    if (records.size() == end - begin) {
      from_.ReadStored(begin, stored_);
      writer_.AppendBlock(records, stored_);
      return;
    }
    std::vector<std::vector<std::byte>> images(records.size());
    std::size_t r = 0;
    for (std::uint64_t i = begin; i < end; ++i) {
      if (IsDropped(i)) continue;
      from_.Read(i, images[r]);
      records[r].payload = images[r];
      ++r;
    }
    std::vector<std::byte> frame;
    EncodeBlock(records, compressor_, frame);
    writer_.AppendBlock(records, frame);
  }

  const ShardReader& from_;
  const std::vector<std::uint64_t>& dropped_;
  const ShardRewrite& rewrite_;
  ShardWriter writer_;
  Compressor compressor_;
  std::vector<std::byte> stored_;
};

}  // namespace

ShardSummary WriteWithout(const ShardReader& from, const std::vector<std::uint64_t>& dropped,
                          const ShardRewrite& rewrite) {
  return Rewriter(from, dropped, rewrite).Run();
}

}  // namespace shardpack

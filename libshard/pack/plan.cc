#include "libshard/pack/plan.h"

#include <algorithm>

namespace shardpack {
namespace {

constexpr std::uint64_t kBatchInputs = 64;
constexpr std::uint64_t kBatchBytes = 1 << 20;
constexpr std::size_t kDigestInputs = 4096;  // hashed at once

void Put(std::string& out, std::uint64_t value) {
  for (int shift = 0; shift < 64; shift += 8) out += static_cast<char>(value >> shift & 0xFF);
}

// Each text after its length, so that no two lists of texts give the same bytes.
void Put(std::string& out, std::string_view text) {
  Put(out, text.size());
  out += text;
}

void Put(std::string& out, const Digest128& digest) {
  Put(out, digest.high);
  Put(out, digest.low);
}

}  // namespace

std::vector<InputRange> CutIntoShards(const std::vector<Input>& inputs, std::uint64_t shard_bytes,
                                      std::optional<std::uint64_t> shard_records) {
  std::vector<InputRange> shards;
  InputRange open;
  for (std::uint64_t i = 0; i < inputs.size(); ++i) {
    const bool full = shard_records
                          ? open.size() >= *shard_records
                          : open.bytes > 0 && inputs[i].size > shard_bytes - std::min(open.bytes, shard_bytes);
    if (full) {
      shards.push_back(open);
      open = {i, i, 0};
    }
    open.end = i + 1;
    open.bytes += inputs[i].size;
  }
  if (open.size() > 0) shards.push_back(open);
  return shards;
}

std::vector<InputRange> CutIntoBatches(const std::vector<Input>& inputs, const InputRange& shard) {
  std::vector<InputRange> batches;
  InputRange open{shard.begin, shard.begin, 0};
  for (std::uint64_t i = shard.begin; i < shard.end; ++i) {
    if (open.size() >= kBatchInputs || (open.size() > 0 && open.bytes + inputs[i].size > kBatchBytes)) {
      batches.push_back(open);
      open = {i, i, 0};
    }
    open.end = i + 1;
    open.bytes += inputs[i].size;
  }
  if (open.size() > 0) batches.push_back(open);
  return batches;
}

Digest128 RequestDigest(const PackOptions& options, const Inputs& inputs) {
  std::string text = "shardpack request 1";
  for (const auto& [name, value] : ContentOptions(options)) {
    Put(text, name);
    Put(text, value);
  }
  Put(text, options.name);
  Put(text, inputs.classes.size());
  for (const std::string& name : inputs.classes) Put(text, name);
  Put(text, inputs.list.size());
  std::string some;
  for (std::size_t begin = 0; begin < inputs.list.size(); begin += kDigestInputs) {
    some.clear();
    const std::size_t end = std::min(inputs.list.size(), begin + kDigestInputs);
    for (std::size_t i = begin; i < end; ++i) {
      Put(some, inputs.list[i].key);
      Put(some, inputs.list[i].size);
      Put(some, static_cast<std::uint64_t>(inputs.list[i].label));
    }
    Put(text, Xxh3_128(AsBytes(some)));
  }
  return Xxh3_128(AsBytes(text));
}

}  // namespace shardpack

// What tools that move or mend records need of a shard beyond reading it.
#include "libshard/store/reader_impl.h"

namespace shardpack {

ShardReader ShardReader::OpenByFooter(const std::filesystem::path& path) {
  return ShardReader(std::make_unique<Impl>(path, true));
}

void ShardReader::ReadStored(std::uint64_t i, std::vector<std::byte>& out) const {
  const Bytes copy = impl_->CheckedCopy(i, impl_->RowAt(i).info);
  out.assign(copy.begin(), copy.end());
}

Bytes ShardReader::Dictionary() const {
  const BlockedSection& section = impl_->dictionary;
  if (section.bytes() == 0) return {};
  return section.Range(0, section.bytes(), {}, section.entry().offset);
}

}  // namespace shardpack

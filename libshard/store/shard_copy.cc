// Reading records as they are stored, for tools that move them.
#include "libshard/store/reader_impl.h"

namespace shardpack {

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

#include "libshard/pack/key_set.h"

namespace shardpack {
namespace {

constexpr std::size_t kFirstSlots = 64;

}  // namespace

bool KeySet::Insert(std::string_view key) {
  Digest128 hash = Xxh3_128(AsBytes(key));
  if (hash == Digest128{}) hash.low = 1;
  Part& part = parts_[hash.high >> 56];
  // Four of five slots at most are taken.
  if ((part.used + 1) * 5 > part.slots.size() * 4) {
    Part larger;
    larger.slots.resize(part.slots.empty() ? kFirstSlots : part.slots.size() * 2);
    for (const Digest128& old : part.slots) {
      if (!(old == Digest128{})) InsertInto(larger, old);
    }
    part = std::move(larger);
  }
  return InsertInto(part, hash);
}

bool KeySet::InsertInto(Part& part, const Digest128& hash) {
  const std::size_t mask = part.slots.size() - 1;
  std::size_t at = hash.low & mask;
  for (; !(part.slots[at] == Digest128{}); at = (at + 1) & mask) {
    if (part.slots[at] == hash) return false;
  }
  part.slots[at] = hash;
  ++part.used;
  return true;
}

}  // namespace shardpack

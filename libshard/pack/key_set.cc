#include "libshard/pack/key_set.h"

namespace shardpack {
namespace {

constexpr std::size_t kFirstSlots = 64;

}  // namespace

bool KeySet::Insert(std::string_view key) {
  const Digest128 hash = HashOf(key);
  Part& part = parts_[hash.high >> 56];
  // Four of five slots at most are taken.
  if ((part.used + 1) * 5 > part.slots.size() * 4) {
    Part larger;
    larger.slots.resize(part.slots.empty() ? kFirstSlots : part.slots.size() * 2);
    larger.used = part.used;
    for (const Digest128& old : part.slots) {
      if (!(old == Digest128{})) larger.slots[Find(larger, old)] = old;
    }
    part = std::move(larger);
  }
  Digest128& slot = part.slots[Find(part, hash)];
  if (slot == hash) return false;
  slot = hash;
  ++part.used;
  return true;
}

bool KeySet::Has(std::string_view key) const {
  const Digest128 hash = HashOf(key);
  const Part& part = parts_[hash.high >> 56];
  return !part.slots.empty() && part.slots[Find(part, hash)] == hash;
}

Digest128 KeySet::HashOf(std::string_view key) {
  Digest128 hash = Xxh3_128(AsBytes(key));
  if (hash == Digest128{}) hash.low = 1;
  return hash;
}

std::size_t KeySet::Find(const Part& part, const Digest128& hash) {
  const std::size_t mask = part.slots.size() - 1;
  std::size_t at = hash.low & mask;
  while (!(part.slots[at] == Digest128{}) && !(part.slots[at] == hash)) at = (at + 1) & mask;
  return at;
}

}  // namespace shardpack

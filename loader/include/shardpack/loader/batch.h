// One rank's part of one step: named fields in one slot of the ring.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shardpack/loader/state.h"

namespace shardpack::loader {

enum class DType { kUint8, kInt64, kFloat32, kBool };
enum class Layout { kNhwc, kNchw };
std::size_t SizeOf(DType type);

// Describes memory inside a slot. Strides are in elements.
struct Field {
  std::string name;  // "images", "labels", "indices", "source_indices", "valid"
  DType dtype = DType::kUint8;
  std::vector<std::int64_t> shape, strides;
  std::byte* data = nullptr;
  std::optional<Layout> layout;  // of pictures; none for columns
};
std::size_t BytesOf(const Field& field);

// Gives the memory of slots. An argument of the loader, so that pinned memory comes from whoever owns the device. The
// deleter may run on any thread, also after the loader's end.
class BatchAllocator {
 public:
  virtual ~BatchAllocator() = default;
  // At least `bytes`, aligned to 64. Throws std::bad_alloc or Error.
  virtual std::shared_ptr<std::byte> Allocate(std::size_t bytes) = 0;
  virtual bool pinned() const { return false; }
};
std::shared_ptr<BatchAllocator> OrdinaryMemory();

// A batch counts as a user of its slot, and so does every copy of it and every `hold()`: the slot returns to the ring
// when the last of them is gone. The data is the batch's alone until then. Cheap to copy; safe to give to another
// thread.
class Batch {
 public:
  Batch() = default;

  const Field& images() const;  // [B, H, W, 3] kNhwc or [B, 3, H, W] kNchw
  // int64 [B]. Throws Error with kInvalidArgument where the dataset's labels are lists or fractions: there is no such
  // field then, and LabelText() of shardpack/label.h reads them.
  const Field& labels() const;
  const Field& indices() const;         // int64 [B]: the planned samples
  const Field& source_indices() const;  // int64 [B]: the delivered ones (differ where a bad record was substituted)
  const Field& valid() const;           // bool [B]: false for padding and, under Tail::kExact, for bad records
  std::span<const Field> fields() const;
  const Field* Find(std::string_view name) const;

  std::uint64_t step() const;          // of this epoch's iteration, from 0
  std::uint32_t num_valid() const;     // of this rank
  std::uint64_t global_valid() const;  // planned valid samples of all ranks in this step
  const State& state_after() const;    // what to save once this batch was trained on

  // Keeps the slot while it lives: for tensors made of the fields.
  std::shared_ptr<void> hold() const;

  struct Slot;  // internal
  explicit Batch(std::shared_ptr<Slot> slot);

 private:
  std::shared_ptr<Slot> slot_;
};

}  // namespace shardpack::loader

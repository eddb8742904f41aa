// One batch buffer and the ring it belongs to.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "shardpack/loader/batch.h"
#include "shardpack/loader/order.h"
#include "shardpack/loader/report.h"

namespace shardpack::loader {

// What happened to a place whose record was bad.
struct BadPlace {
  std::uint32_t place = 0;
  bool masked = false;  // else substituted
  BadRecord record;
};

struct Batch::Slot {
  std::shared_ptr<std::byte> memory;
  std::vector<Field> fields;  // in the order of FieldOf
  bool beyond_ring = false;   // taken while the user held everything: freed, not reused

  // Of the batch that is in it.
  std::uint64_t step = 0, global_valid = 0;
  std::uint32_t num_valid = 0;
  State state_after;
  Slice slice;

  // What the tasks found; guarded by the run's mutex.
  std::vector<BadPlace> bad;
  std::exception_ptr error;  // of the lowest place that has one
  std::uint32_t error_place = 0;

  // kLabels is last, for not every dataset has it.
  enum FieldOf { kImages, kIndices, kSourceIndices, kValid, kLabels, kNumFields };
  bool HasLabels() const { return fields.size() > kLabels; }
  template <typename T>
  T* Data(FieldOf field) const {
    return reinterpret_cast<T*>(fields[field].data);
  }
};

// The shape of a batch, from which slots are made.
struct SlotShape {
  std::uint32_t batch_size = 1, width = 0, height = 0;
  DType dtype = DType::kUint8;
  Layout layout = Layout::kNhwc;
  bool labels = true;  // false where the dataset's are no single whole numbers

  // Throws Error with kInvalidArgument where one batch cannot be addressed.
  std::size_t Bytes() const;
  std::unique_ptr<Batch::Slot> Make(BatchAllocator& allocator) const;
};

// The slots of one iteration. Thread-safe. Outlives the iteration in no batch: those keep their slot alone.
class Ring : public std::enable_shared_from_this<Ring> {
 public:
  using SlotPtr = std::unique_ptr<Batch::Slot>;

  Ring(SlotShape shape, std::uint32_t num_slots, std::uint32_t num_beyond, std::shared_ptr<BatchAllocator> allocator);

  // A free slot, made at its first use; null where the ring has none. Throws what the allocator throws.
  SlotPtr Take();
  // A slot of ordinary memory beside the ring, for when the user holds all of it; null where the budget is used up.
  SlotPtr TakeBeyond();
  // Gives back a slot that was never shared.
  void Return(SlotPtr slot);
  // The handle of which every copy counts as a user; the last one's end gives the slot back, on whatever thread.
  std::shared_ptr<Batch::Slot> Share(SlotPtr slot);
  // Frees all that is free now or will be.
  void Close();

  std::uint32_t num_shared() const;

 private:
  struct Releaser;
  void Release(Batch::Slot* slot);

  const SlotShape shape_;
  const std::uint32_t num_slots_, num_beyond_;
  const std::shared_ptr<BatchAllocator> allocator_;
  const pid_t process_;

  mutable std::mutex mutex_;
  std::vector<SlotPtr> free_;
  std::uint32_t made_ = 0, made_beyond_ = 0, shared_ = 0;
  bool closed_ = false;
};

}  // namespace shardpack::loader

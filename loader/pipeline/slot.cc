#include "loader/pipeline/slot.h"

#include <unistd.h>

#include <limits>
#include <string>

#include "shardpack/error.h"

namespace shardpack::loader {
namespace {

constexpr std::size_t kAlignment = 64;

std::size_t Aligned(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

std::vector<std::int64_t> StridesOfNchw(std::int64_t width, std::int64_t height) {
  return {3 * height * width, height * width, width, 1};
}

std::vector<std::int64_t> StridesOfNhwc(std::int64_t width, std::int64_t height) {
  return {3 * height * width, 3 * width, 3, 1};
}

Field Column(const char* name, DType dtype, std::uint32_t batch_size) {
  return {name, dtype, {std::int64_t{batch_size}}, {1}, nullptr, {}};
}

// The fields without their memory.
std::vector<Field> FieldsOf(const SlotShape& shape) {
  const std::int64_t b = shape.batch_size, w = shape.width, h = shape.height;
  Field images{"images", shape.dtype, {b, h, w, 3}, StridesOfNhwc(w, h), nullptr, shape.layout};
  if (shape.layout == Layout::kNchw) {
    images.shape = {b, 3, h, w};
    images.strides = StridesOfNchw(w, h);
  }
  std::vector<Field> fields = {images, Column("indices", DType::kInt64, shape.batch_size),
                               Column("source_indices", DType::kInt64, shape.batch_size),
                               Column("valid", DType::kBool, shape.batch_size)};
  if (shape.labels) fields.push_back(Column("labels", DType::kInt64, shape.batch_size));
  return fields;
}

}  // namespace

std::size_t SlotShape::Bytes() const {
  __extension__ using Wide = unsigned __int128;
  const Wide images = Wide{width} * height * 3 * SizeOf(dtype) * batch_size;
  if (images > static_cast<Wide>(std::numeric_limits<std::int64_t>::max() / 2)) {
    throw Error(ErrorCode::kInvalidArgument, "batch_size = " + std::to_string(batch_size) + " of " +
                                                 std::to_string(width) + "x" + std::to_string(height) +
                                                 " pixels is more than memory can address");
  }
  std::size_t bytes = 0;
  for (const Field& field : FieldsOf(*this)) bytes += Aligned(BytesOf(field));
  return bytes;
}

std::unique_ptr<Batch::Slot> SlotShape::Make(BatchAllocator& allocator) const {
  auto slot = std::make_unique<Batch::Slot>();
  slot->memory = allocator.Allocate(Bytes());
  slot->fields = FieldsOf(*this);
  std::byte* at = slot->memory.get();
  for (Field& field : slot->fields) {
    field.data = at;
    at += Aligned(BytesOf(field));
  }
  return slot;
}

Ring::Ring(SlotShape shape, std::uint32_t num_slots, std::uint32_t num_beyond,
           std::shared_ptr<BatchAllocator> allocator)
    : shape_(shape),
      num_slots_(num_slots),
      num_beyond_(num_beyond),
      allocator_(std::move(allocator)),
      process_(getpid()) {}

Ring::SlotPtr Ring::Take() {
  {
    std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      SlotPtr slot = std::move(free_.back());  // the one used last is the warmest
      free_.pop_back();
      return slot;
    }
    if (made_ == num_slots_) return nullptr;
  }
  SlotPtr slot = shape_.Make(*allocator_);
  std::lock_guard lock(mutex_);
  ++made_;
  return slot;
}

Ring::SlotPtr Ring::TakeBeyond() {
  {
    std::lock_guard lock(mutex_);
    if (made_beyond_ == num_beyond_) return nullptr;
  }
  SlotPtr slot = shape_.Make(*OrdinaryMemory());
  slot->beyond_ring = true;
  std::lock_guard lock(mutex_);
  ++made_beyond_;
  return slot;
}

void Ring::Return(SlotPtr slot) {
  std::lock_guard lock(mutex_);
  if (slot->beyond_ring) {
    --made_beyond_;
  } else if (!closed_) {
    free_.push_back(std::move(slot));
  }
}

// Holds the ring weakly, so that a batch kept for long keeps its own slot alone.
struct Ring::Releaser {
  std::weak_ptr<Ring> ring;
  void operator()(Batch::Slot* slot) const {
    const auto alive = ring.lock();
    // In a child of fork() the mutex may stand locked for ever: there the slot is only freed.
    if (alive && alive->process_ == getpid()) {
      alive->Release(slot);
    } else {
      delete slot;
    }
  }
};

std::shared_ptr<Batch::Slot> Ring::Share(SlotPtr slot) {
  {
    std::lock_guard lock(mutex_);
    ++shared_;
  }
  return {slot.release(), Releaser{weak_from_this()}};
}

void Ring::Release(Batch::Slot* slot) {
  {
    std::lock_guard lock(mutex_);
    --shared_;
  }
  Return(SlotPtr(slot));
}

void Ring::Close() {
  std::vector<SlotPtr> freed;  // outside of the lock: the allocator may be slow
  std::lock_guard lock(mutex_);
  closed_ = true;
  freed.swap(free_);
}

std::uint32_t Ring::num_shared() const {
  std::lock_guard lock(mutex_);
  return shared_;
}

}  // namespace shardpack::loader

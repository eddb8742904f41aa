#include "shardpack/loader/batch.h"

#include <cassert>
#include <new>

#include "loader/pipeline/slot.h"
#include "shardpack/error.h"

namespace shardpack::loader {
namespace {

constexpr std::align_val_t kAlignment{64};

class Ordinary final : public BatchAllocator {
 public:
  std::shared_ptr<std::byte> Allocate(std::size_t bytes) override {
    auto* memory = static_cast<std::byte*>(::operator new(bytes, kAlignment));
    return {memory, [](std::byte* p) { ::operator delete(p, kAlignment); }};
  }
};

}  // namespace

std::size_t SizeOf(DType type) {
  switch (type) {
    case DType::kUint8:
    case DType::kBool:
      return 1;
    case DType::kFloat32:
      return 4;
    case DType::kInt64:
      return 8;
  }
  return 0;
}

std::size_t BytesOf(const Field& field) {
  std::size_t bytes = SizeOf(field.dtype);
  for (std::int64_t extent : field.shape) bytes *= static_cast<std::size_t>(extent);
  return bytes;
}

std::shared_ptr<BatchAllocator> OrdinaryMemory() {
  static const auto ordinary = std::make_shared<Ordinary>();
  return ordinary;
}

Batch::Batch(std::shared_ptr<Slot> slot) : slot_(std::move(slot)) {}

const Field& Batch::images() const { return slot_->fields[Slot::kImages]; }
const Field& Batch::labels() const {
  if (!slot_->HasLabels()) {
    throw Error(ErrorCode::kInvalidArgument,
                "the labels of this dataset are lists or fractions, of which a batch has no field: read them by "
                "source_indices() with shardpack::LabelText()");
  }
  return slot_->fields[Slot::kLabels];
}
const Field& Batch::indices() const { return slot_->fields[Slot::kIndices]; }
const Field& Batch::source_indices() const { return slot_->fields[Slot::kSourceIndices]; }
const Field& Batch::valid() const { return slot_->fields[Slot::kValid]; }
std::span<const Field> Batch::fields() const { return slot_->fields; }

const Field* Batch::Find(std::string_view name) const {
  for (const Field& field : slot_->fields) {
    if (field.name == name) return &field;
  }
  return nullptr;
}

std::uint64_t Batch::step() const { return slot_->step; }
std::uint32_t Batch::num_valid() const { return slot_->num_valid; }
std::uint64_t Batch::global_valid() const { return slot_->global_valid; }
const State& Batch::state_after() const { return slot_->state_after; }
std::shared_ptr<void> Batch::hold() const { return slot_; }

}  // namespace shardpack::loader

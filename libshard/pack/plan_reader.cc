#include "libshard/pack/plan_file.h"
#include "libshard/pack/plan_format.h"
#include "libshard/store/mapped_file.h"
#include "shardpack/error.h"

namespace shardpack {
namespace {

[[noreturn]] void Damaged(const std::string& path, std::uint64_t offset, const std::string& reason) {
  throw Error(ErrorCode::kCorruption, Location{path, {}, offset}, "damaged plan: " + reason);
}

}  // namespace

struct Plan::Impl {
  std::string path;
  MappedFile file;
  PlanHeader header;
  PlanHead head;

  PlanRow Row(std::uint64_t s) const {
    return PlanRow::Decode(file.bytes().subspan(header.table_offset + s * kPlanRowBytes, kPlanRowBytes));
  }
  void CheckTable() const;
};

// Sections follow each other from the header to the table, and their sums are the head's.
void Plan::Impl::CheckTable() const {
  std::uint64_t end = kPlanHeaderBytes, inputs = 0, bytes = 0;
  for (std::uint64_t s = 0; s < header.num_shards; ++s) {
    const PlanRow row = Row(s);
    const std::uint64_t at = header.table_offset + s * kPlanRowBytes;
    if (row.offset != end || row.bytes > header.table_offset - row.offset) {
      Damaged(path, at, "a section is out of place");
    }
    end += row.bytes;
    inputs += row.inputs;
    bytes += row.input_bytes;
  }
  if (end != header.table_offset) Damaged(path, header.table_offset, "its sections do not end with its table");
  if (inputs != head.num_inputs || bytes != head.bytes) {
    Damaged(path, header.head_offset, "its head and its table differ in the number of inputs");
  }
}

Plan::Plan(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Plan::Plan(Plan&&) noexcept = default;
Plan& Plan::operator=(Plan&&) noexcept = default;
Plan::~Plan() = default;

Plan Plan::Open(const std::filesystem::path& file) {
  auto impl = std::make_unique<Impl>();
  impl->path = file.native();
  impl->file = MappedFile::Open(file);
  const Bytes bytes = impl->file.bytes();
  impl->header = PlanHeader::Decode(bytes, impl->path);
  const PlanHeader& header = impl->header;
  const Bytes table = bytes.subspan(header.table_offset, header.num_shards * kPlanRowBytes);
  if (Xxh3_64(table) != header.table_xxh3) Damaged(impl->path, header.table_offset, "checksum mismatch in its table");
  const Bytes head = bytes.subspan(header.head_offset, header.head_bytes);
  if (Xxh3_64(head) != header.head_xxh3) Damaged(impl->path, header.head_offset, "checksum mismatch in its head");
  impl->head = DecodePlanHead(head, Location{impl->path, {}, header.head_offset});
  impl->CheckTable();
  return Plan(std::move(impl));
}

const PlanHead& Plan::head() const noexcept { return impl_->head; }
std::uint64_t Plan::num_shards() const noexcept { return impl_->header.num_shards; }
std::uint64_t Plan::NumInputs(std::uint64_t s) const { return impl_->Row(s).inputs; }
std::uint64_t Plan::NumBytes(std::uint64_t s) const { return impl_->Row(s).input_bytes; }

void Plan::CheckShard(std::uint64_t s) const {
  const PlanRow row = impl_->Row(s);
  if (Xxh3_128(impl_->file.bytes().subspan(row.offset, row.bytes)) != row.digest)
    Damaged(impl_->path, row.offset, "checksum mismatch in shard " + std::to_string(s));
}

PlannedShard Plan::Shard(std::uint64_t s) const {
  CheckShard(s);
  const PlanRow row = impl_->Row(s);
  const Bytes section = impl_->file.bytes().subspan(row.offset, row.bytes);
  PlannedShard shard = DecodePlanSection(section, row.inputs, Location{impl_->path, {}, row.offset});
  shard.number = impl_->head.first_shard + s;
  shard.bytes = row.input_bytes;
  return shard;
}

}  // namespace shardpack

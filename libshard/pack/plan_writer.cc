#include "libshard/pack/plan_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "shardpack/error.h"

namespace shardpack {
namespace {

constexpr std::size_t kBuffer = 1 << 20;

}  // namespace

bool ShardCutter::BeginsWith(std::uint64_t input_bytes) {
  const bool full = shard_records_ ? inputs_ >= *shard_records_
                                   : bytes_ > 0 && input_bytes > shard_bytes_ - std::min(bytes_, shard_bytes_);
  if (full && inputs_ > 0) {
    inputs_ = 1;
    bytes_ = input_bytes;
    return true;
  }
  ++inputs_;
  bytes_ += input_bytes;
  return false;
}

PlanWriter::PlanWriter(const std::filesystem::path& file, std::uint64_t shard_bytes,
                       std::optional<std::uint64_t> shard_records)
    : path_(file.native()), cutter_(shard_bytes, shard_records) {
  if (unlink(path_.c_str()) != 0 && errno != ENOENT) ThrowSystemError(errno, "remove", path_);
  fd_ = UniqueFd(open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!fd_) ThrowSystemError(errno, "create", path_);
  row_.offset = kPlanHeaderBytes;
}

PlanWriter::~PlanWriter() {
  if (!finished_) unlink(path_.c_str());
}

void PlanWriter::Add(const PlannedInput& input) {
  if (cutter_.BeginsWith(input.size)) EndSection();
  const std::size_t begin = buffer_.size();
  EncodePlannedInput(input, key_before_, buffer_);
  section_.Add(AsBytes(std::string_view(buffer_).substr(begin)));
  key_before_.assign(input.key);
  row_.bytes += buffer_.size() - begin;
  ++row_.inputs;
  row_.input_bytes += input.size;
  if (buffer_.size() >= kBuffer) Flush();
}

void PlanWriter::EndSection() {
  row_.digest = section_.Finish();
  row_.EncodeTo(table_);
  ++num_shards_;
  const std::uint64_t end = row_.offset + row_.bytes;
  row_ = {};
  row_.offset = end;
  section_ = Xxh3Stream128();
  key_before_.clear();
}

void PlanWriter::Finish(const PlanHead& head) {
  if (row_.inputs > 0) EndSection();
  const std::string head_text = EncodePlanHead(head);
  PlanHeader header;
  header.table_offset = row_.offset;
  header.num_shards = num_shards_;
  header.head_bytes = head_text.size();
  header.table_xxh3 = Xxh3_64(AsBytes(table_));
  header.head_xxh3 = Xxh3_64(AsBytes(head_text));
  buffer_ += table_;
  buffer_ += head_text;
  Flush();
  const auto bytes = header.Encode();
  WriteAt(0, {bytes.data(), bytes.size()});
  if (fsync(fd_.get()) != 0) ThrowSystemError(errno, "sync", path_);
  finished_ = true;
}

void PlanWriter::Flush() {
  WriteAt(offset_, buffer_);
  offset_ += buffer_.size();
  buffer_.clear();
}

void PlanWriter::WriteAt(std::uint64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) ThrowSystemError(errno, "write", path_);
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
    offset += static_cast<std::uint64_t>(wrote);
  }
}

}  // namespace shardpack

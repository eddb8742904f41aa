#include "libshard/pack/external_sort.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "libshard/pack/task_arena.h"
#include "libshard/store/coding.h"
#include "shardpack/error.h"
#include "shardpack/pack.h"

namespace shardpack {
namespace {

constexpr std::size_t kSlots = 64;
constexpr std::uint64_t kMinChunk = 256 << 10, kMaxChunk = 4 << 20;
constexpr std::uint64_t kMinRunBuffer = 16 << 10, kMaxRunBuffer = 1 << 20;
constexpr std::uint64_t kWriteBuffer = 256 << 10;
// More are merged to one, so that their read buffers stay within the budget.
constexpr std::size_t kMaxRuns = 256;
constexpr std::uint64_t kStopEvery = 1024;  // entries; some tenths of a millisecond
constexpr std::uint64_t kLengths = 8;
// What an entry costs beside its bytes.
constexpr std::uint64_t kEntryOverhead = sizeof(std::uint32_t);

std::size_t SlotOfThread() {
  static std::atomic<std::size_t> next{0};
  thread_local const std::size_t slot = next++ % kSlots;
  return slot;
}

struct Entry {
  const char* at;

  std::uint32_t key_bytes() const { return Load<std::uint32_t>(at); }
  std::uint32_t payload_bytes() const { return Load<std::uint32_t>(at + 4); }
  std::string_view key() const { return {at + kLengths, key_bytes()}; }
  std::string_view payload() const { return {at + kLengths + key_bytes(), payload_bytes()}; }
  std::uint64_t bytes() const { return kLengths + key_bytes() + payload_bytes(); }

  bool operator<(const Entry& other) const {
    const int keys = key().compare(other.key());  // std::char_traits<char> compares as unsigned
    return keys != 0 ? keys < 0 : payload() < other.payload();
  }
};

void ThrowIfStopped(const std::atomic<bool>* stop) {
  if (stop != nullptr && *stop) throw Interrupted{};
}

}  // namespace

void ExternalSorter::Chunk::Sort() {
  const char* base = bytes.get();
  const auto less = [base](std::uint32_t a, std::uint32_t b) { return Entry{base + a} < Entry{base + b}; };
  // A walk over a tree brings them in order, often.
  if (!std::is_sorted(entries.begin(), entries.end(), less)) std::sort(entries.begin(), entries.end(), less);
}

// The entries of a sorted chunk, or of a run through a buffer.
class ExternalSorter::Cursor {
 public:
  explicit Cursor(const Chunk& chunk) : chunk_(&chunk) { Next(); }
  Cursor(int fd, const std::string& name, Run run, std::uint64_t buffer)
      : fd_(fd), name_(&name), run_(run), buffer_(buffer) {
    Next();
  }

  bool done() const { return entry_.at == nullptr; }
  const Entry& entry() const { return entry_; }

  void Next() {
    if (chunk_ != nullptr) {
      entry_.at = next_ < chunk_->entries.size() ? chunk_->bytes.get() + chunk_->entries[next_++] : nullptr;
      return;
    }
    if (entry_.at != nullptr) begin_ += entry_.bytes();
    entry_.at = nullptr;
    if (begin_ == end_ && run_.bytes == 0) return;
    Need(kLengths);
    Need(Entry{&buffer_[begin_]}.bytes());
    entry_.at = &buffer_[begin_];
  }

 private:
  void Need(std::uint64_t bytes) {
    if (end_ - begin_ >= bytes) return;
    std::memmove(buffer_.data(), &buffer_[begin_], end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    if (buffer_.size() < bytes) buffer_.resize(bytes);
    while (end_ < bytes) {
      const std::uint64_t size = std::min<std::uint64_t>(buffer_.size() - end_, run_.bytes);
      const ssize_t got = pread(fd_, &buffer_[end_], size, static_cast<off_t>(run_.offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) ThrowSystemError(errno, "read", *name_);
      if (got == 0) throw Error(ErrorCode::kIo, Location{*name_, {}, {}}, "a sorted run ends too early");
      end_ += static_cast<std::uint64_t>(got);
      run_.offset += static_cast<std::uint64_t>(got);
      run_.bytes -= static_cast<std::uint64_t>(got);
    }
  }

  const Chunk* chunk_ = nullptr;
  std::size_t next_ = 0;
  int fd_ = -1;
  const std::string* name_ = nullptr;
  Run run_;  // what is not in the buffer yet
  std::vector<char> buffer_;
  std::uint64_t begin_ = 0, end_ = 0;
  Entry entry_{nullptr};
};

// A heap of cursors, the smallest entry at the top.
class ExternalSorter::Merge {
 public:
  void Add(Cursor cursor) {
    if (!cursor.done()) cursors_.push_back(std::make_unique<Cursor>(std::move(cursor)));
  }
  template <typename Take>
  void Run(const std::atomic<bool>* stop, const Take& take) {
    for (std::size_t i = cursors_.size() / 2; i-- > 0;) SiftDown(i);
    for (std::uint64_t n = 0; !cursors_.empty(); ++n) {
      if (n % kStopEvery == 0) ThrowIfStopped(stop);
      take(cursors_[0]->entry());
      cursors_[0]->Next();
      if (cursors_[0]->done()) {
        std::swap(cursors_[0], cursors_.back());
        cursors_.pop_back();
      }
      SiftDown(0);
    }
  }

 private:
  void SiftDown(std::size_t i) {
    for (;;) {
      std::size_t child = 2 * i + 1;
      if (child >= cursors_.size()) return;
      if (child + 1 < cursors_.size() && cursors_[child + 1]->entry() < cursors_[child]->entry()) ++child;
      if (!(cursors_[child]->entry() < cursors_[i]->entry())) return;
      std::swap(cursors_[child], cursors_[i]);
      i = child;
    }
  }

  std::vector<std::unique_ptr<Cursor>> cursors_;
};

class ExternalSorter::RunWriter {
 public:
  RunWriter(int fd, const std::string& name, std::uint64_t offset) : fd_(fd), name_(name), offset_(offset) {}

  void Add(const Entry& entry) {
    buffer_.append(entry.at, entry.bytes());
    if (buffer_.size() >= kWriteBuffer) Flush();
  }
  void Flush() {
    for (std::size_t done = 0; done < buffer_.size();) {
      const ssize_t wrote = pwrite(fd_, buffer_.data() + done, buffer_.size() - done, static_cast<off_t>(offset_));
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0) ThrowSystemError(errno, "write", name_);
      done += static_cast<std::size_t>(wrote);
      offset_ += static_cast<std::uint64_t>(wrote);
    }
    buffer_.clear();
  }

 private:
  const int fd_;
  const std::string& name_;
  std::uint64_t offset_;
  std::string buffer_;
};

ExternalSorter::ExternalSorter(std::filesystem::path scratch, std::uint64_t memory_bytes, const std::atomic<bool>* stop)
    : scratch_(std::move(scratch)),
      memory_bytes_(std::max(memory_bytes, 2 * kMinChunk)),
      chunk_bytes_(std::clamp(memory_bytes / kSlots, kMinChunk, kMaxChunk)),
      stop_(stop),
      slots_(kSlots) {}

ExternalSorter::~ExternalSorter() = default;

void ExternalSorter::Add(std::string_view key, std::string_view payload) {
  const std::uint64_t bytes = kLengths + key.size() + payload.size();
  Slot& slot = slots_[SlotOfThread()];
  const std::lock_guard lock(slot.mutex);
  if (slot.open.capacity - slot.open.used < bytes) {
    Seal(slot);
    slot.open.capacity = std::max(chunk_bytes_, bytes);
    slot.open.bytes = std::make_unique_for_overwrite<char[]>(slot.open.capacity);
  }
  char* at = &slot.open.bytes[slot.open.used];
  Store(at, static_cast<std::uint32_t>(key.size()));
  Store(at + 4, static_cast<std::uint32_t>(payload.size()));
  if (!key.empty()) std::memcpy(at + kLengths, key.data(), key.size());
  if (!payload.empty()) std::memcpy(at + kLengths + key.size(), payload.data(), payload.size());
  slot.open.entries.push_back(static_cast<std::uint32_t>(slot.open.used));
  slot.open.used += bytes;
}

void ExternalSorter::Seal(Slot& slot) {
  Chunk chunk = std::move(slot.open);
  slot.open = {};
  if (chunk.entries.empty()) return;
  ThrowIfStopped(stop_);
  chunk.Sort();
  HandIn(std::move(chunk));
}

void ExternalSorter::HandIn(Chunk chunk) {
  const std::uint64_t bytes = chunk.used + chunk.entries.size() * kEntryOverhead;
  std::unique_lock lock(mutex_);
  // Whoever comes while a spill is under way and the budget is used up waits for it.
  room_.wait(lock, [&] { return spilling_bytes_ == 0 || sealed_bytes_ + spilling_bytes_ + bytes <= memory_bytes_; });
  sealed_.push_back(std::move(chunk));
  sealed_bytes_ += bytes;
  if (sealed_bytes_ >= memory_bytes_ / 2) Spill(lock);
}

void ExternalSorter::Spill(std::unique_lock<std::mutex>& lock) {
  const std::vector<Chunk> chunks = std::exchange(sealed_, {});
  const std::uint64_t held = std::exchange(sealed_bytes_, 0);
  spilling_bytes_ += held;
  std::uint64_t bytes = 0;
  for (const Chunk& chunk : chunks) bytes += chunk.used;
  std::vector<Run> merged;  // with the chunks
  if (runs_.size() >= kMaxRuns) {
    merged = std::exchange(runs_, {});
    for (const Run& run : merged) bytes += run.bytes;
  }
  const auto finish = [&] {
    spilling_bytes_ -= held;
    room_.notify_all();
  };
  try {
    if (!file_) OpenFile();
    const Run run{file_end_, bytes};
    file_end_ += bytes;
    lock.unlock();
    WriteRun(chunks, merged, run);
    lock.lock();
    runs_.push_back(run);
    ++runs_written_;
  } catch (...) {
    if (!lock.owns_lock()) lock.lock();
    finish();
    throw;
  }
  finish();
}

void ExternalSorter::WriteRun(const std::vector<Chunk>& chunks, const std::vector<Run>& runs, const Run& to) const {
  Merge merge;
  for (const Chunk& chunk : chunks) merge.Add(Cursor(chunk));
  for (const Run& old : runs) merge.Add(Cursor(file_.get(), file_name_, old, RunBuffer(runs.size())));
  RunWriter writer(file_.get(), file_name_, to.offset);
  merge.Run(stop_, [&](const Entry& entry) { writer.Add(entry); });
  writer.Flush();
}

void ExternalSorter::OpenFile() {
  file_name_ = (scratch_ / "sort-XXXXXX").native();
  file_ = UniqueFd(mkostemp(file_name_.data(), O_CLOEXEC));
  if (!file_) ThrowSystemError(errno, "create", file_name_);
  if (unlink(file_name_.c_str()) != 0) ThrowSystemError(errno, "remove", file_name_);
}

std::uint64_t ExternalSorter::RunBuffer(std::size_t runs) const {
  return std::clamp(memory_bytes_ / 2 / std::max<std::size_t>(runs, 1), kMinRunBuffer, kMaxRunBuffer);
}

void ExternalSorter::Finish() {
  ParallelFor(0, slots_.size(), 1, [&](std::uint64_t i) {
    const std::lock_guard lock(slots_[i].mutex);
    Seal(slots_[i]);
  });
}

void ExternalSorter::ForEach(const std::function<void(std::string_view, std::string_view)>& take) const {
  Merge merge;
  for (const Chunk& chunk : sealed_) merge.Add(Cursor(chunk));
  for (const Run& run : runs_) merge.Add(Cursor(file_.get(), file_name_, run, RunBuffer(runs_.size())));
  merge.Run(stop_, [&](const Entry& entry) { take(entry.key(), entry.payload()); });
}

}  // namespace shardpack

// Sorting more than fits into memory.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "libshard/store/unique_fd.h"

namespace shardpack {

// Entries of a key and a payload, in ascending order of keys as memcmp() sees them, a shorter one before a longer one
// that it begins; equal keys in the order of their payloads. So the order depends on the entries alone.
//
// Add() from any number of threads at once; the rest from one. Entries beyond the budget go to one file of sorted runs
// that has no name from its first moment on, so that nothing is left behind, not even after SIGKILL.
class ExternalSorter {
 public:
  // `memory_bytes`: of entries held at once, about; each thread that adds takes another 1/64. `stop` may be null.
  ExternalSorter(std::filesystem::path scratch, std::uint64_t memory_bytes, const std::atomic<bool>* stop);
  ~ExternalSorter();

  // Precondition: each shorter than 4 GiB. Throws Error with kIo or kNotFound (the scratch folder); Interrupted.
  void Add(std::string_view key, std::string_view payload);
  // After the last Add(). Throws as Add().
  void Finish();
  // All entries in order, as often as it is called; views end with the call. Precondition: Finish() was called. Throws
  // as Add(), and what `take` throws.
  void ForEach(const std::function<void(std::string_view key, std::string_view payload)>& take) const;

  std::uint64_t num_spilled_runs() const { return runs_written_; }

 private:
  // Entries one after another, as in a run: {u32 bytes of key, u32 bytes of payload, key, payload}.
  struct Chunk {
    std::unique_ptr<char[]> bytes;
    std::uint64_t used = 0, capacity = 0;
    std::vector<std::uint32_t> entries;  // where they begin
    void Sort();
  };
  struct Run {
    std::uint64_t offset = 0, bytes = 0;
  };
  struct alignas(64) Slot {
    std::mutex mutex;
    Chunk open;
  };
  class Cursor;
  class Merge;
  class RunWriter;

  void Seal(Slot& slot);
  void HandIn(Chunk chunk);
  void WriteRun(const std::vector<Chunk>& chunks, const std::vector<Run>& runs, const Run& to) const;
  void Spill(std::unique_lock<std::mutex>& lock);
  void OpenFile();
  std::uint64_t RunBuffer(std::size_t runs) const;

  const std::filesystem::path scratch_;
  const std::uint64_t memory_bytes_, chunk_bytes_;
  const std::atomic<bool>* stop_;
  std::vector<Slot> slots_;

  std::mutex mutex_;
  std::condition_variable room_;
  std::vector<Chunk> sealed_;
  std::uint64_t sealed_bytes_ = 0, spilling_bytes_ = 0;
  UniqueFd file_;
  std::string file_name_;
  std::uint64_t file_end_ = 0;
  std::vector<Run> runs_;
  std::uint64_t runs_written_ = 0;
};

}  // namespace shardpack

#include <fcntl.h>
#include <sys/stat.h>
#include <tbb/enumerable_thread_specific.h>
#include <tbb/task_group.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <mutex>
#include <new>
#include <system_error>
#include <tuple>

#include "libshard/pack/shared_progress.h"
#include "libshard/pack/task_arena.h"
#include "libshard/pack/verify_sample.h"
#include "libshard/store/checksum.h"
#include "libshard/store/unique_fd.h"
#include "shardpack/dataset.h"
#include "shardpack/error.h"
#include "shardpack/pack.h"
#include "shardpack/threads.h"

namespace shardpack {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kReadBytes = 1 << 20;
constexpr std::size_t kDecodeBytes = 4 << 20;  // encoded bytes handed to a decoding task at once

void CheckStop(const VerifyOptions& options) {
  if (options.stop != nullptr && options.stop->load(std::memory_order_relaxed)) throw Interrupted{};
}

// XXH3-128 of a file, read in pieces: a file that is cut short meanwhile ends the reading and not the process.
Digest128 DigestOfFile(const fs::path& path, const VerifyOptions& options) {
  UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) ThrowSystemError(errno, "open", path.native());
  Xxh3Stream128 stream;
  std::vector<std::byte> buffer(kReadBytes);
  for (;;) {
    CheckStop(options);
    const ssize_t n = read(file.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) ThrowSystemError(errno, "read", path.native());
    if (n == 0) return stream.Finish();
    stream.Add(Bytes(buffer).first(static_cast<std::size_t>(n)));
  }
}

// Decodes the records of one shard in tasks, while the next are being read.
class DecodeCheck {
 public:
  using Report = std::function<void(std::uint64_t record, const std::string& reason)>;
  DecodeCheck(tbb::enumerable_thread_specific<ImageDecoder>& decoders, int threads, Report report)
      : decoders_(decoders), most_(static_cast<std::size_t>(threads) * 2), report_(std::move(report)) {}
  ~DecodeCheck() { Wait(); }

  void Add(std::uint64_t record, Bytes bytes) {
    waiting_.emplace_back(record, std::vector<std::byte>(bytes.begin(), bytes.end()));
    waiting_bytes_ += bytes.size();
    if (waiting_bytes_ >= kDecodeBytes) Start();
  }
  void Finish() {
    Start();
    Wait();
  }

 private:
  using Records = std::vector<std::pair<std::uint64_t, std::vector<std::byte>>>;

  void Start() {
    if (started_.size() == most_) Wait();
    waiting_bytes_ = 0;
    Records* records = &started_.emplace_back(std::exchange(waiting_, {}));
    hand_over_.BeforeStart();
    tasks_.run([this, records] {
      hand_over_.InTaskAtFirst();
      Image picture;
      for (const auto& [record, bytes] : *records) {
        try {
          decoders_.local().Decode(bytes, picture);
        } catch (const Error& error) {
          report_(record, error.reason());
        } catch (const std::bad_alloc&) {
          report_(record, "not enough memory to decode it");
        }
      }
      records->clear();  // not kept until all have ended
      hand_over_.InTaskAtLast();
    });
  }
  void Wait() {
    tasks_.wait();
    hand_over_.AfterWait();
    started_.clear();
  }

  tbb::enumerable_thread_specific<ImageDecoder>& decoders_;
  const std::size_t most_;
  Report report_;
  tbb::task_group tasks_;
  HandOver hand_over_;
  std::deque<Records> started_;  // what tasks read stays where it is
  Records waiting_;
  std::size_t waiting_bytes_ = 0;
};

struct ShardOutcome {
  std::uint64_t records = 0, bytes = 0;
  std::vector<VerifyFault> faults;
};

class Verification {
 public:
  Verification(const VerifyOptions& options, int threads, std::uint64_t records, std::uint64_t bytes)
      : options_(options),
        threads_(threads),
        decoders_([limits = options.limits] { return ImageDecoder(limits); }),
        progress_(options.progress, "verifying", records, bytes) {}

  // `entry` is what the manifest says; null for a shard alone.
  ShardOutcome CheckShard(const fs::path& path, const ShardEntry* entry) {
    ShardOutcome out;
    const std::string name = path.filename().native();
    const auto fault = [&](const std::string& kind, std::uint64_t offset, const std::string& message) {
      out.faults.push_back({name, std::nullopt, std::nullopt, offset, kind, message});
    };
    try {
      struct stat status;
      if (stat(path.c_str(), &status) != 0) {
        const int error = errno;
        fault("missing", 0,
              error == ENOENT ? "the shard is missing"
                              : "cannot be looked at: " + std::generic_category().message(error));
        return out;
      }
      out.bytes = static_cast<std::uint64_t>(status.st_size);
      if (entry != nullptr && out.bytes != entry->bytes) {
        fault("size", 0,
              "truncated or changed: " + std::to_string(out.bytes) + " bytes, the manifest says " +
                  std::to_string(entry->bytes));
      } else if (entry != nullptr && DigestOfFile(path, options_) != entry->digest) {
        fault("digest", 0, "corrupt: the file's digest is not the manifest's");
      }
      CheckInside(path, entry, out);
    } catch (const Error& error) {
      const char* kind = error.code() == ErrorCode::kNotFound      ? "missing"
                         : error.code() == ErrorCode::kUnsupported ? "version"
                                                                   : "open";
      fault(kind, error.where().offset.value_or(0), error.reason());
    }
    // By record too: those of a block have one offset, and are decoded by several threads.
    std::stable_sort(out.faults.begin(), out.faults.end(), [](const VerifyFault& a, const VerifyFault& b) {
      return std::tie(a.offset, a.record) < std::tie(b.offset, b.record);
    });
    return out;
  }

 private:
  void CheckInside(const fs::path& path, const ShardEntry* entry, ShardOutcome& out) {
    const ShardReader reader = ShardReader::Open(path);
    const std::string name = path.filename().native();
    std::mutex mutex;
    const auto add = [&](VerifyFault fault) {
      if (fault.record && *fault.record < reader.num_records()) {
        try {
          fault.key = std::string(reader.Key(*fault.record));
        } catch (const Error&) {
          // The key is damaged as well: the record's number has to do.
        }
      }
      const std::lock_guard<std::mutex> lock(mutex);
      out.faults.push_back(std::move(fault));
    };
    if (entry != nullptr && reader.num_records() != entry->records) {
      add({name, std::nullopt, std::nullopt, 0, "manifest",
           std::to_string(reader.num_records()) + " records, the manifest says " + std::to_string(entry->records)});
    }
    DecodeCheck decode(decoders_, threads_, [&](std::uint64_t record, const std::string& reason) {
      add({name, record, std::nullopt, reader.Info(record).offset, "decode", reason});
    });
    std::uint64_t records = 0, bytes = 0;  // since the last report
    reader.VerifyAll(
        [&](const ShardReader::Fault& f) {
          add({name, f.record, std::nullopt, f.offset, f.kind, f.message});
        },
        [&](std::uint64_t record, Bytes encoded) {
          CheckStop(options_);
          ++out.records;
          ++records;
          bytes += reader.Info(record).stored_bytes;
          if (options_.decode) decode.Add(record, encoded);
          if (records < 512 && bytes < kReadBytes) return;
          progress_.Add(std::exchange(records, 0), std::exchange(bytes, 0));
        });
    decode.Finish();
    progress_.Add(records, bytes);
  }

  const VerifyOptions& options_;
  const int threads_;
  tbb::enumerable_thread_specific<ImageDecoder> decoders_;
  SharedProgress progress_;
};

// A shard that is older than the last append has the classes that there were then.
bool AreFirst(const std::vector<std::string>& names, const Manifest& manifest) {
  if (names.empty()) return manifest.classes.empty() || manifest.label_kind != LabelKind::kClass;
  return names.size() <= manifest.classes.size() && std::equal(names.begin(), names.end(), manifest.classes.begin());
}

// The manifest's sums, against the shards' own indexes. Only asked for where no shard has a fault.
void CheckManifest(const fs::path& folder, const Manifest& manifest, VerifyResult& result) {
  const auto fault = [&](const std::string& message) {
    result.faults.push_back({kManifestName, std::nullopt, std::nullopt, 0, "manifest", message});
  };
  DatasetDigester digester;
  std::uint64_t records = 0;
  for (const ShardEntry& entry : manifest.shards) {
    const ShardReader reader = ShardReader::Open(folder / entry.file);
    if (!AreFirst(reader.class_names(), manifest)) fault("the classes of " + entry.file + " are not the manifest's");
    for (std::uint64_t i = 0; i < reader.num_records(); ++i) {
      const RecordInfo info = reader.Info(i);
      digester.Add(reader.Key(i), info.label, reader.Metadata(i), info.encoding, info.encoded_xxh3);
    }
    records += reader.num_records();
  }
  if (records != manifest.records)
    fault(std::to_string(records) + " records, the manifest says " + std::to_string(manifest.records));
  if (digester.Finish(manifest.classes) != manifest.dataset_digest)
    fault("corrupt: the dataset's digest is not that of its records");
}

void VerifyDataset(const fs::path& folder, const VerifyOptions& options, int threads, VerifyResult& result) {
  Manifest manifest;
  try {
    manifest = Manifest::Load(folder);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kNotFound) throw;
    result.faults.push_back(
        {kManifestName, std::nullopt, std::nullopt, error.where().offset.value_or(0), "manifest", error.reason()});
    return;
  }
  Verification verification(options, threads, manifest.records, manifest.bytes_out);
  std::vector<ShardOutcome> outcomes(manifest.shards.size());
  ParallelFor(0, outcomes.size(), 1, [&](std::uint64_t s) {
    CheckStop(options);
    outcomes[s] = verification.CheckShard(folder / manifest.shards[s].file, &manifest.shards[s]);
  });
  for (ShardOutcome& outcome : outcomes) {
    result.records += outcome.records;
    result.bytes += outcome.bytes;
    std::move(outcome.faults.begin(), outcome.faults.end(), std::back_inserter(result.faults));
  }
  if (result.faults.empty()) CheckManifest(folder, manifest, result);
}

}  // namespace

VerifyResult Verify(const fs::path& path, const VerifyOptions& options) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) ThrowSystemError(errno, "open", path.native());
  const int threads = options.threads > 0 ? options.threads : AvailableThreads();
  VerifyResult result;
  ArenaOf(threads).execute([&] {
    if (options.budget) {
      VerifySample(path, options, result);
    } else if (S_ISDIR(status.st_mode)) {
      VerifyDataset(path, options, threads, result);
    } else if (path.filename() == kManifestName) {
      VerifyDataset(path.parent_path(), options, threads, result);
    } else {
      Verification verification(options, threads, 0, static_cast<std::uint64_t>(status.st_size));
      ShardOutcome outcome = verification.CheckShard(path, nullptr);
      result.records = outcome.records;
      result.bytes = outcome.bytes;
      result.faults = std::move(outcome.faults);
    }
  });
  return result;
}

}  // namespace shardpack

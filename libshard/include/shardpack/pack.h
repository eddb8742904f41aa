// Packing: what `shardpack convert` and its sisters call.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shardpack/image.h"
#include "shardpack/manifest.h"

namespace shardpack {

enum class OnError { kSkip, kFail };
enum class VerifyImages { kDecode, kHeader, kNone };

// How far a conversion is; counted in inputs.
struct PackProgress {
  std::string_view stage;  // "scanning", "packing", "sealing"
  std::uint64_t inputs_done = 0, inputs_total = 0;
  std::uint64_t bytes_done = 0, bytes_total = 0;
  std::uint64_t bad_inputs = 0;  // so far
};

struct PackOptions {
  std::vector<std::filesystem::path> sources;  // class folders, one tree each
  std::filesystem::path output;

  // A shard closes before its inputs pass this size, or this count where it is given. By input size, so that the cut is known before work.
  std::uint64_t shard_bytes = 256ull << 20;
  std::optional<std::uint64_t> shard_records;

  // Pins class numbers: names in order of label. An input of another class is kInvalidArgument. Unset: byte order of names.
  std::optional<std::vector<std::string>> classes;

  OnError on_error = OnError::kSkip;
  // Limit of tolerated bad inputs: a count, or a share of all inputs (0.01 for 1%). Unset: no limit.
  std::optional<std::uint64_t> max_bad;
  std::optional<double> max_bad_share;

  VerifyImages verify_images = VerifyImages::kDecode;
  ImageLimits limits;
  int threads = 0;  // 0: all this process may use
  std::uint64_t memory_bytes = 2ull << 30;
  bool overwrite = false;
  bool dry_run = false;
  std::string name;

  // Called now and then from one thread at a time; may be empty.
  std::function<void(const PackProgress&)> progress;
  // One line for a person ("class b_empty has no images"); may be empty.
  std::function<void(const std::string&)> warn;
  // Set to true by a signal handler: Convert() stops soon, removes what is unfinished, and throws Interrupted.
  const std::atomic<bool>* stop = nullptr;
};

// Thrown when PackOptions::stop was set.
struct Interrupted {};

struct PackResult {
  Manifest manifest;  // of a dry run: what is known before work (shards with records and bytes of input)
  bool sealed = false;
  bool already_complete = false;  // the same request was sealed before; nothing was touched
  std::uint64_t ignored_files = 0;  // neither candidates nor folders, or hidden
  // The first few of the bad inputs; all are in the ledger.
  struct Bad {
    std::string key, reason;
  };
  static constexpr std::size_t kNamedBad = 5;
  std::vector<Bad> first_bad;
  double seconds = 0;
};

// Scans, plans, packs and seals. The dataset appears by renaming dataset.json into place; until then an older dataset in `output` stays
// whole. Bytes of the output depend on options and inputs only, never on threads, times, locale or the file system's order.
// Throws Error: kInvalidArgument (options, or the output holds another dataset and overwrite is false: names the difference),
// kBadInput (bad input under kFail or over the limit, or no image at all; the message names the file), kNotFound, kIo.
PackResult Convert(const PackOptions& options);

struct VerifyFault {
  std::string shard;
  std::optional<std::uint64_t> record;
  std::optional<std::string> key;
  std::uint64_t offset = 0;
  std::string kind;  // "missing", "size", "digest", "checksum", "padding", "record-header", "range", "order", "decode", "manifest"
  std::string message;
};
struct VerifyResult {
  std::uint64_t records = 0;  // whose bytes were checked
  std::uint64_t bytes = 0;
  std::vector<VerifyFault> faults;
};
struct VerifyOptions {
  bool decode = false;  // decode each image as well
  ImageLimits limits;
  int threads = 0;
  std::function<void(const PackProgress&)> progress;
  const std::atomic<bool>* stop = nullptr;
};
// `path` is a dataset or one shard. Every checksum, digest and padding, every fault in order of shard and offset. What cannot be opened
// at all is a fault as well; throws only for kNotFound of `path` itself and for Interrupted.
VerifyResult Verify(const std::filesystem::path& path, const VerifyOptions& options);

enum class ExtractTo { kFolder, kTar };
struct ExtractOptions {
  std::filesystem::path dataset, output;  // a folder (created; must be empty) or a tar file
  ExtractTo to = ExtractTo::kFolder;
  std::function<void(const PackProgress&)> progress;
  const std::atomic<bool>* stop = nullptr;
};
// Back to files under their keys; bytes as they went in. A key that would leave the folder (absolute, "..") is kCorruption.
// Returns the number of files.
std::uint64_t Extract(const ExtractOptions& options);

}  // namespace shardpack

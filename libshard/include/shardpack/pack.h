// Packing: what `shardpack convert` and its sisters call.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shardpack/image.h"
#include "shardpack/manifest.h"
#include "shardpack/shard_writer.h"

namespace shardpack {

enum class OnError { kSkip, kFail };
enum class VerifyImages { kDecode, kHeader, kNone };
// kDataset: a shardpack dataset of either kind, or an HDF5 file with arrays of images and labels.
enum class SourceKind { kAuto, kFolder, kCsv, kJsonl, kTar, kZip, kTfrecord, kDataset };
// kDefault: kName where all sources are folders, else kSource. kName: byte order of keys. kSource: as listed, source
// after source (folders: by name). kShuffled: a fixed permutation drawn from `order_seed` and the keys.
enum class RecordOrder { kDefault, kName, kSource, kShuffled };
enum class ImageMode { kKeep, kLossless, kJpeg, kPixels };
enum class Chroma { kKeep, k444, k422, k420 };  // of re-encoded JPEGs; kKeep: as the source, 4:2:0 where it has none
enum class Compression { kAuto, kNone, kZstd, kArchive };
enum class Statistics { kNone, kSample, kAll };

// Pictures are only ever shrunk, antialiased, after EXIF orientation was applied.
struct ResizeTo {
  std::uint32_t short_side = 0;  // keeps the aspect ratio; 0 where width and height are given
  std::uint32_t width = 0, height = 0;
};

// The share of the plan's shards that this process does.
struct Part {
  std::uint32_t index = 0, count = 1;  // from 0
  std::string launcher;  // who said so: "--part", "Slurm", "Open MPI", "PMI", "Kubernetes"; empty: one process
};

// Of the inputs those whose key's hash, as a fraction of 1, lies in [begin, end).
struct KeyShare {
  std::string name;
  double begin = 0, end = 1;
};

// How far a conversion is; counted in inputs.
struct PackProgress {
  std::string_view stage;  // "scanning", "planning", "packing", "sealing", "waiting" (for another process that plans)
  std::uint64_t inputs_done = 0, inputs_total = 0;
  std::uint64_t bytes_done = 0, bytes_total = 0;
  std::uint64_t bad_inputs = 0;  // so far
};

struct PackOptions {
  std::vector<std::filesystem::path> sources;
  std::filesystem::path output;
  SourceKind from = SourceKind::kAuto;
  std::string path_column = "path", label_column = "label";                          // of CSV and JSON lines
  std::string image_feature = "image/encoded", label_feature = "image/class/label";  // of tf.train.Example
  RecordOrder order = RecordOrder::kDefault;
  std::uint64_t order_seed = 0;
  // Globs over whole keys, as fnmatch() without flags matches them: `*` matches `/` too. An input is taken where one of
  // `include` matches (or there is none) and none of `exclude` does. Class numbers do not depend on them.
  std::vector<std::string> include, exclude;
  std::optional<KeyShare> share;
  std::optional<std::uint64_t> limit;  // the first so many in the order

  ImageMode images = ImageMode::kKeep;
  int quality = 90;  // of kJpeg
  Chroma chroma = Chroma::kKeep;
  std::optional<ResizeTo> resize;  // not with kKeep and kLossless
  Compression compression = Compression::kAuto;
  std::optional<int> zstd_level;  // unset: 3, of an archive 9
  // Bytes of the zstd dictionary for tiny records; 0: none. Unset: chosen while planning.
  std::optional<std::uint64_t> dictionary_bytes;
  Statistics statistics = Statistics::kNone;

  // A shard closes before its inputs pass this size, or this count where it is given. By input size, so that the cut is
  // known before work.
  std::uint64_t shard_bytes = 256ull << 20;
  std::optional<std::uint64_t> shard_records;

  // Pins class numbers: names in order of label. An input of another class is kInvalidArgument. Unset: byte order of
  // names.
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
  bool rescan = false;  // trust no plan of an earlier run: look at all inputs again
  std::string name;
  Part part;

  // Called now and then from one thread at a time; may be empty.
  std::function<void(const PackProgress&)> progress;
  // One line for a person ("class b_empty has no images"); may be empty.
  std::function<void(const std::string&)> warn;
  // Set to true by a signal handler: Convert() stops within a second and throws Interrupted. Finished shards and the
  // plan stay, and the same call goes on from there.
  const std::atomic<bool>* stop = nullptr;
};

// Thrown when PackOptions::stop was set.
struct Interrupted {};

struct PackResult {
  Manifest manifest;  // of a dry run: what is known before work (shards with records and bytes of input)
  bool sealed = false;
  bool already_complete = false;  // the same request was sealed before; nothing was touched
  bool resumed = false;           // went on with an earlier plan
  std::uint64_t shards_done = 0;  // of the plan's, by all processes so far
  std::uint64_t shards_planned = 0;
  std::vector<std::uint32_t>
      missing_parts;                // of options.part.count: those that have shards to do yet, where not sealed
  std::uint64_t ignored_files = 0;  // neither candidates nor folders, or hidden
  // The first few of the bad inputs; all are in the ledger.
  struct Bad {
    std::string key, reason;
  };
  static constexpr std::size_t kNamedBad = 5;
  std::vector<Bad> first_bad;
  double seconds = 0;
};

// Scans, plans, packs its part and, where no part is missing, seals. The dataset appears by renaming dataset.json into
// place; until then an older dataset in `output` stays whole. Bytes of the output depend on options and inputs only,
// never on threads, times, locale or the file system's order. Throws Error: kInvalidArgument (options, or the output
// holds another dataset and overwrite is false: names the difference), kBadInput (bad input under kFail or over the
// limit, or no image at all; the message names the file), kNotFound, kIo.
PackResult Convert(const PackOptions& options);

// The first step alone: scans and publishes the plan in OUTPUT/.shardpack, or compares with the one that is there.
PackResult MakePlan(const PackOptions& options);

// The last step alone: checks that every shard of the plan is there and whole, and commits the dataset. Throws Error
// with kInvalidArgument that names the shards and parts that are missing.
struct SealOptions {
  std::filesystem::path output;
  std::optional<std::uint64_t> max_bad;  // as in PackOptions; else those of the plan
  std::function<void(const PackProgress&)> progress;
  const std::atomic<bool>* stop = nullptr;
};
PackResult Seal(const SealOptions& options);

// What is done, running and missing in a folder that is being packed into, over all parts. Changes nothing.
struct PackStatus {
  bool sealed = false;    // a dataset is there
  bool planned = false;   // a plan is there
  bool planning = false;  // a process is making one
  std::uint64_t shards = 0, shards_done = 0;
  std::uint64_t inputs = 0, inputs_done = 0, bytes = 0, bytes_done = 0, bad_inputs = 0;
  struct PartStatus {
    std::uint32_t index = 0, count = 1;
    bool running = false;
    std::string where;  // "host node7, process 4711"
    std::uint64_t shards = 0, shards_done = 0;
  };
  std::vector<PartStatus> parts;       // those that were ever started
  std::vector<std::uint64_t> missing;  // shards that no running part will do
};
PackStatus Status(const std::filesystem::path& output);

// Adds the sources' inputs to a dataset as new shards; nothing old is rewritten. Options that change content are those
// the dataset was made with, but for `sources` and how they are read. Class numbers stay; an input of an unknown class
// is kInvalidArgument unless `new_classes`, which puts new names at the end. Crash-safe and resumed as Convert().
PackResult Append(const PackOptions& options, bool new_classes);

// Drops the records that the ledger (JSON lines with "key" or "key_hex") names. Only shards that hold one are
// rewritten, and of them only the index and blocks that lose a record: payloads are copied as they are stored. New
// shards have new names; renaming dataset.json is the commit. Run again with the same ledger, it finds that it is done.
// Throws Error: kBadInput (an unreadable line, none of the keys in the dataset), kInvalidArgument (nothing would be
// left), kCorruption (a record that is to stay is damaged), kUnsupported (HDF5 shards), kNotFound, kIo (another process
// writes there, ...).
struct AmendOptions {
  std::filesystem::path dataset, ledger;
  std::function<void(const PackProgress&)> progress;
  const std::atomic<bool>* stop = nullptr;
};
struct AmendResult {
  Manifest manifest;
  std::uint64_t dropped = 0, not_found = 0, shards_rewritten = 0, shards_removed = 0;
  static constexpr std::size_t kNamedUnknown = 5;
  std::vector<std::string> unknown_keys;  // the first few of `not_found`
  std::uint64_t lines_without_key = 0;    // of the ledger: faults that belong to no record
  bool statistics_given_up = false;       // they were of a sample, or a dropped picture could not be decoded
  bool already_complete = false;
};
AmendResult Amend(const AmendOptions& options);

// Rebuilds a shard whose header, index or footer is lost or damaged, or that has holes, from the headers before its
// records and from what is left of its index. Where no record was harmed the new file is byte for byte the old one as
// it was. Throws Error: kNotFound, kIo, kInvalidArgument (`output` exists), kCorruption (nothing can be read).
struct RepairOptions {
  std::filesystem::path shard, output;  // output: the new file; must not exist
  // Puts the new file in the place of the old one where it has the digest that dataset.json beside it states.
  bool in_place = false;
  int threads = 0;
  std::function<void(const PackProgress&)> progress;
  const std::atomic<bool>* stop = nullptr;
};
struct RepairResult {
  std::uint64_t records = 0;     // that came back
  bool index_was_whole = false;  // nothing but payloads were harmed, or nothing at all
  bool unchanged = false;        // the new file equals the old one: no byte of it was harmed
  struct Loss {
    std::uint64_t offset = 0, bytes = 0;  // the damaged region
    std::optional<std::uint64_t> record;  // its number, where known
    std::optional<std::string> key;
    std::string what;  // one line
    // How many, from `record` on, where nothing is known of each; 0 where it is not known whether there was any.
    std::uint64_t records = 1;
  };
  std::vector<Loss> losses;        // of records, by place
  std::vector<std::string> notes;  // what else could not be brought back; one line each
  // What dataset.json beside the shard says of it.
  enum class InDataset { kNotNamed, kSameDigest, kOtherDigest };
  InDataset in_dataset = InDataset::kNotNamed;
  bool placed = false;  // in_place was done
  ShardSummary summary;
};
RepairResult Repair(const RepairOptions& options);

struct VerifyFault {
  std::string shard;
  std::optional<std::uint64_t> record;
  std::optional<std::string> key;
  std::uint64_t offset = 0;
  std::string kind;  // "missing", "open", "version", "size", "digest", "checksum", "padding", "record-header", "range",
                     // "order", "decode", "manifest"
  std::string message;
};
struct VerifyResult {
  std::uint64_t records = 0;  // whose bytes were checked
  std::uint64_t bytes = 0;
  std::vector<VerifyFault> faults;
  // Of a sample: how many records were looked at and how many of those were damaged, and the share of damaged records
  // that all of them stay below with that confidence. All of them looked at: the share itself.
  struct Sample {
    std::uint64_t records = 0, of = 0, damaged = 0;
    double confidence = 0, damaged_share_bound = 1;
  };
  std::optional<Sample> sample;
};
struct VerifyOptions {
  bool decode = false;  // decode each image as well
  // Looks at so many records, spread over the whole dataset, as it can in this time.
  std::optional<std::chrono::nanoseconds> budget;
  ImageLimits limits;
  int threads = 0;
  std::function<void(const PackProgress&)> progress;
  const std::atomic<bool>* stop = nullptr;
};
// `path` is a dataset or one shard. Every checksum, digest and padding, every fault in order of shard and offset. What
// cannot be opened at all is a fault as well; throws only for kNotFound of `path` itself and for Interrupted.
VerifyResult Verify(const std::filesystem::path& path, const VerifyOptions& options);

enum class ExtractTo { kFolder, kTar };
struct ExtractOptions {
  std::filesystem::path dataset, output;  // a folder (created; must be empty) or a tar file
  ExtractTo to = ExtractTo::kFolder;
  std::function<void(const PackProgress&)> progress;
  const std::atomic<bool>* stop = nullptr;
};
// Back to files under their keys, or under the names of an archive's members (libshard/pack/extract_names.h); bytes as
// they were packed, filtered pixels as PNG. A name that would leave the folder (absolute, "..") is kCorruption. Returns
// the number of files.
std::uint64_t Extract(const ExtractOptions& options);

}  // namespace shardpack

// dataset.json: the list of shards and everything that is true of the whole dataset (docs/formats/manifest.md).
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "shardpack/record.h"

namespace shardpack {

inline constexpr char kManifestName[] = "dataset.json";
inline constexpr char kWorkFolder[] = ".shardpack";
inline constexpr char kLedgerName[] = "bad_inputs.jsonl";

// kClass: an index into `classes`. kInteger: any 64-bit number. kList and kFloat: a record's label is the member "label" of
// its metadata (a list of 64-bit integers; a number that reads back as the same double), and RecordInfo::label is 0.
enum class LabelKind { kClass, kInteger, kList, kFloat };
std::string_view Name(LabelKind kind);  // "class", "integer", "list", "float"

struct ShardEntry {
  std::string file;  // name inside the dataset's folder, without a slash
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;
  Digest128 digest;        // ShardSummary::file_digest
  Digest128 index_digest;  // ShardSummary::index_digest: compared when the shard is opened, so that no other shard takes its place
};

// Counts of a quantity, for medians and pictures: value -> number of records. Written in ascending order of value.
using Histogram = std::map<std::uint32_t, std::uint64_t>;

struct CodecCount {
  std::uint64_t records = 0, raw_bytes = 0, stored_bytes = 0;
};

// What compressing brought on the planned sample, and what was chosen for all records of the encoding.
struct CodecReceipt {
  std::string encoding;                // "png"
  std::string codec;                   // chosen: "stored", "zstd", "zstd-dictionary", "zstd-block"
  std::uint64_t sample_records = 0;
  std::uint64_t sample_raw_bytes = 0;
  std::uint64_t sample_stored_bytes = 0;  // as chosen
  std::uint64_t decode_ns_per_record = 0; // from a fixed table, never from a clock
  friend bool operator==(const CodecReceipt&, const CodecReceipt&) = default;
};

// Integer sums over the 8-bit RGB pixels of decoded pictures: mean and deviation follow from them exactly.
struct ChannelSums {
  std::uint64_t pictures = 0, pixels = 0;
  std::array<std::uint64_t, 3> sum{}, sum_of_squares{};
  friend bool operator==(const ChannelSums&, const ChannelSums&) = default;
};

// A change since the dataset was converted, in order: lets a rerun of the same command see that it is done.
struct Revision {
  std::string command;  // "append", "amend"
  Digest128 request;    // of its options and inputs, or of its ledger
  std::uint64_t records = 0;  // that it added or dropped
  friend bool operator==(const Revision&, const Revision&) = default;
};

struct Manifest {
  std::uint32_t format_version = 1;
  std::string name;                   // only where --name gave it
  std::string format = "record";      // "record" or "hdf5"
  LabelKind label_kind = LabelKind::kClass;
  std::vector<std::string> classes;   // byte strings, index = label
  std::vector<ShardEntry> shards;
  std::uint64_t records = 0;
  std::uint64_t bytes_in = 0;         // sum of the sizes of the packed inputs
  std::uint64_t bytes_out = 0;        // sum of the shards' sizes
  std::uint64_t bad_inputs = 0;
  std::map<std::string, std::string> options;     // those that change content, as text: "images" -> "keep"
  std::map<std::string, std::uint64_t> encodings;  // "jpeg" -> records
  std::map<std::string, CodecCount> codecs;        // "stored" -> ...
  Histogram widths, heights;
  std::vector<CodecReceipt> receipts;
  std::optional<ChannelSums> statistics;  // where they were asked for; left out of the text where a sum is 2^63 or more
  std::vector<Revision> revisions;
  Digest128 request_digest;  // options, keys and sizes of the inputs
  Digest128 dataset_digest;  // of the content: see DatasetDigester
  std::string creator;       // "shardpack 1.0.0"

  // Byte-for-byte reproducible text. Class names and shard files that are not UTF-8 are written as {"hex": "..."}.
  std::string ToJson() const;
  // Throws Error with kCorruption (naming the field) or kUnsupported (newer format version).
  static Manifest FromJson(std::string_view text, const std::string& path);
  // Reads FOLDER/dataset.json. Throws Error with kNotFound ("no dataset.json in FOLDER"), kIo, kCorruption, kUnsupported.
  static Manifest Load(const std::filesystem::path& folder);
  // Writes FOLDER/dataset.json under a temporary name, syncs it, renames it into place and syncs the folder.
  void Commit(const std::filesystem::path& folder) const;
};

// Digest of a dataset's content over its records in order: independent of shard sizes, codecs and containers.
// Formula in docs/formats/manifest.md.
class DatasetDigester {
 public:
  DatasetDigester();
  ~DatasetDigester();
  void Add(std::string_view key, std::int64_t label, Bytes metadata, Encoding encoding, std::uint64_t encoded_xxh3);
  Digest128 Finish(const std::vector<std::string>& classes);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shardpack

// The text of the manifest, read strictly.
#include <limits>
#include <nlohmann/json.hpp>

#include "libshard/store/text.h"
#include "shardpack/error.h"
#include "shardpack/manifest.h"

namespace shardpack {
namespace {

using Json = nlohmann::json;

constexpr std::uint32_t kManifestVersion = 1;

// A value of the document and how to name it in a message.
class Field {
 public:
  Field(const Json& json, std::string name, const std::string& path)
      : json_(json), name_(std::move(name)), path_(path) {}

  [[noreturn]] void Fail(const std::string& message) const {
    throw Error(ErrorCode::kCorruption, Location{path_, {}, {}}, "corrupt manifest: \"" + name_ + "\" " + message);
  }

  bool Has(const char* key) const { return Object().contains(key); }
  Field At(const char* key) const {
    const auto found = Object().find(key);
    const std::string name = name_.empty() ? key : name_ + "." + key;
    if (found == json_.end()) Field(json_, name, path_).Fail("is missing");
    return {*found, name, path_};
  }

  std::uint64_t Number(std::uint64_t most = std::numeric_limits<std::int64_t>::max()) const {
    if (!json_.is_number_unsigned()) Fail("is not a whole number from 0 on");
    const auto value = json_.get<std::uint64_t>();
    if (value > most) Fail("is out of range");
    return value;
  }
  std::string Text() const {
    if (!json_.is_string()) Fail("is not a string");
    return json_.get<std::string>();
  }
  std::string ByteString() const {
    if (!json_.is_object()) return Text();
    if (json_.size() != 1) Fail("is not {\"hex\": ...}");
    const std::optional<std::string> bytes = FromHex(At("hex").Text());
    if (!bytes || IsUtf8(*bytes)) Fail("is not the hexadecimal form of bytes that need one");
    return *bytes;
  }
  Digest128 Digest() const {
    try {
      return Digest128::FromHex(Text());
    } catch (const Error&) {
      Fail("is not a digest of 32 hexadecimal digits");
    }
  }

  template <typename Visit>
  void Each(Visit visit) const {
    if (!json_.is_array()) Fail("is not a list");
    for (std::size_t i = 0; i < json_.size(); ++i) visit(Field(json_[i], name_ + "[" + std::to_string(i) + "]", path_));
  }
  template <typename Visit>
  void EachMember(Visit visit) const {
    for (const auto& [key, value] : Object().items()) visit(key, Field(value, name_ + "." + Escaped(key), path_));
  }

 private:
  const Json& Object() const {
    if (!json_.is_object()) Fail("is not an object");
    return json_;
  }

  const Json& json_;
  std::string name_;
  const std::string& path_;
};

// Adds without wrapping.
void AddTo(std::uint64_t& sum, std::uint64_t number, const Field& field) {
  if (number > std::numeric_limits<std::int64_t>::max() - sum) field.Fail("sums up beyond 63 bits");
  sum += number;
}

ShardEntry ParseShard(const Field& field) {
  ShardEntry shard;
  shard.file = field.At("file").ByteString();
  const bool inside = !shard.file.empty() && shard.file != "." && shard.file != ".." &&
                      shard.file.find('/') == std::string::npos && shard.file.find('\0') == std::string::npos;
  if (!inside) field.At("file").Fail("is not the name of a file in the dataset's folder");
  shard.records = field.At("records").Number(std::numeric_limits<std::uint32_t>::max());
  shard.bytes = field.At("bytes").Number();
  shard.digest = field.At("digest").Digest();
  shard.index_digest = field.At("index_digest").Digest();
  return shard;
}

Histogram ParseHistogram(const Field& field, std::uint64_t records) {
  Histogram histogram;
  std::uint64_t sum = 0;
  field.Each([&](const Field& bar) {
    std::vector<std::uint64_t> pair;
    bar.Each([&](const Field& number) { pair.push_back(number.Number()); });
    if (pair.size() != 2 || pair[0] > std::numeric_limits<std::uint32_t>::max()) bar.Fail("is not [value, count]");
    if (!histogram.empty() && histogram.rbegin()->first >= pair[0]) bar.Fail("is out of order");
    histogram[static_cast<std::uint32_t>(pair[0])] = pair[1];
    AddTo(sum, pair[1], bar);
  });
  if (sum != records) field.Fail("does not count every record once");
  return histogram;
}

LabelKind ParseLabelKind(const Field& field) {
  for (const LabelKind kind : {LabelKind::kClass, LabelKind::kInteger, LabelKind::kList, LabelKind::kFloat}) {
    if (field.Text() == Name(kind)) return kind;
  }
  field.Fail("is none of \"class\", \"integer\", \"list\" and \"float\"");
}

CodecReceipt ParseReceipt(const Field& field) {
  CodecReceipt receipt;
  receipt.encoding = field.At("encoding").Text();
  receipt.codec = field.At("codec").Text();
  receipt.sample_records = field.At("sample_records").Number();
  receipt.sample_raw_bytes = field.At("sample_raw_bytes").Number();
  receipt.sample_stored_bytes = field.At("sample_stored_bytes").Number();
  receipt.decode_ns_per_record = field.At("decode_ns_per_record").Number();
  return receipt;
}

std::array<std::uint64_t, 3> ParseSums(const Field& field) {
  std::vector<std::uint64_t> sums;
  field.Each([&](const Field& number) { sums.push_back(number.Number()); });
  if (sums.size() != 3) field.Fail("does not have a number for each of three channels");
  return {sums[0], sums[1], sums[2]};
}

// Whoever takes a mean divides by the pixels, and a deviation is the root of what must not be below 0.
ChannelSums ParseStatistics(const Field& field) {
  ChannelSums sums;
  sums.pictures = field.At("pictures").Number();
  sums.pixels = field.At("pixels").Number();
  sums.sum = ParseSums(field.At("sum"));
  sums.sum_of_squares = ParseSums(field.At("sum_of_squares"));
  for (std::size_t c = 0; c < 3; ++c) {
    using Wide = unsigned __int128;
    if (Wide{sums.sum[c]} > Wide{sums.pixels} * 255) field.At("sum").Fail("is more than that many pixels can have");
    const bool possible = Wide{sums.sum_of_squares[c]} <= Wide{sums.sum[c]} * 255 &&
                          Wide{sums.sum[c]} * sums.sum[c] <= Wide{sums.sum_of_squares[c]} * sums.pixels;
    if (!possible) field.At("sum_of_squares").Fail("does not fit the sums");
  }
  return sums;
}

Revision ParseRevision(const Field& field) {
  Revision revision;
  revision.command = field.At("command").Text();
  revision.request = field.At("request").Digest();
  revision.records = field.At("records").Number();
  return revision;
}

// What earlier manifests do not have.
void ParseLaterFields(const Field& root, Manifest& manifest) {
  if (root.Has("receipts"))
    root.At("receipts").Each([&](const Field& field) { manifest.receipts.push_back(ParseReceipt(field)); });
  if (root.Has("statistics")) manifest.statistics = ParseStatistics(root.At("statistics"));
  if (root.Has("revisions"))
    root.At("revisions").Each([&](const Field& field) { manifest.revisions.push_back(ParseRevision(field)); });
}

void ParseShards(const Field& root, Manifest& manifest) {
  std::uint64_t records = 0, bytes = 0;
  root.At("shards").Each([&](const Field& field) {
    manifest.shards.push_back(ParseShard(field));
    AddTo(records, manifest.shards.back().records, field);
    AddTo(bytes, manifest.shards.back().bytes, field);
  });
  manifest.records = root.At("records").Number();
  manifest.bytes_out = root.At("bytes_out").Number();
  if (manifest.records != records) root.At("records").Fail("is not the sum of the shards' records");
  if (manifest.bytes_out != bytes) root.At("bytes_out").Fail("is not the sum of the shards' sizes");
}

void ParseCounts(const Field& root, Manifest& manifest) {
  root.At("options").EachMember(
      [&](const std::string& key, const Field& value) { manifest.options[key] = value.ByteString(); });
  root.At("encodings").EachMember([&](const std::string& key, const Field& value) {
    manifest.encodings[key] = value.Number();
  });
  root.At("codecs").EachMember([&](const std::string& key, const Field& value) {
    manifest.codecs[key] = {value.At("records").Number(), value.At("raw_bytes").Number(),
                            value.At("stored_bytes").Number()};
  });
  manifest.widths = ParseHistogram(root.At("widths"), manifest.records);
  manifest.heights = ParseHistogram(root.At("heights"), manifest.records);
}

Manifest ParseManifest(const Field& root) {
  Manifest manifest;
  if (root.Has("name")) manifest.name = root.At("name").ByteString();
  manifest.format = root.At("format").Text();
  manifest.label_kind = ParseLabelKind(root.At("label_kind"));
  root.At("classes").Each([&](const Field& name) { manifest.classes.push_back(name.ByteString()); });
  ParseShards(root, manifest);
  ParseCounts(root, manifest);
  manifest.bytes_in = root.At("bytes_in").Number();
  manifest.bad_inputs = root.At("bad_inputs").Number();
  manifest.request_digest = root.At("request_digest").Digest();
  manifest.dataset_digest = root.At("dataset_digest").Digest();
  manifest.creator = root.At("creator").Text();
  ParseLaterFields(root, manifest);
  return manifest;
}

}  // namespace

Manifest Manifest::FromJson(std::string_view text, const std::string& path) {
  const Location where{path, {}, {}};
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::exception& error) {
    throw Error(ErrorCode::kCorruption, where, std::string("corrupt manifest: not JSON: ") + Escaped(error.what()));
  }
  const Field root(json, "", path);
  if (!json.is_object()) throw Error(ErrorCode::kCorruption, where, "corrupt manifest: not a JSON object");
  const std::uint64_t version = root.At("format_version").Number();
  if (version > kManifestVersion) {
    throw Error(ErrorCode::kUnsupported, where,
                "manifest version " + std::to_string(version) + " is newer than this program, which reads up to " +
                    std::to_string(kManifestVersion));
  }
  if (version == 0) root.At("format_version").Fail("was never 0");
  return ParseManifest(root);
}

}  // namespace shardpack

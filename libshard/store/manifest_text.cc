// The text of the manifest: written by hand, so that its bytes depend on no library's version.
#include <algorithm>
#include <limits>

#include "libshard/store/text.h"
#include "shardpack/error.h"
#include "shardpack/manifest.h"

namespace shardpack {
namespace {

std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      out += "\\u00" + ToHex({&c, 1});
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string ByteString(std::string_view bytes) {
  return IsUtf8(bytes) ? Quoted(bytes) : "{\"hex\": \"" + ToHex(bytes) + "\"}";
}

// `begin`, the items with commas between, `end`. Lines of their own where `line` is given.
template <typename Items, typename Text>
std::string Join(const Items& items, const char* begin, const char* end, const char* line, Text text) {
  std::string out = begin;
  bool first = true;
  for (const auto& item : items) {
    if (!first) out += *line != '\0' ? "," : ", ";
    out += line + text(item);
    first = false;
  }
  if (!first && *line != '\0') out += "\n  ";
  return out + end;
}

std::string ShardLine(const ShardEntry& shard) {
  return "{\"file\": " + ByteString(shard.file) + ", \"records\": " + std::to_string(shard.records) +
         ", \"bytes\": " + std::to_string(shard.bytes) + ", \"digest\": \"" + shard.digest.Hex() +
         "\", \"index_digest\": \"" + shard.index_digest.Hex() + "\"}";
}

std::string CodecText(const std::pair<const std::string, CodecCount>& codec) {
  const CodecCount& count = codec.second;
  return Quoted(codec.first) + ": {\"records\": " + std::to_string(count.records) +
         ", \"raw_bytes\": " + std::to_string(count.raw_bytes) +
         ", \"stored_bytes\": " + std::to_string(count.stored_bytes) + "}";
}

std::string HistogramText(const Histogram& histogram) {
  return Join(histogram, "[", "]", "", [](const auto& bar) {
    std::string pair = "[";
    pair += std::to_string(bar.first) + ", " + std::to_string(bar.second) + "]";
    return pair;
  });
}

std::string ReceiptLine(const CodecReceipt& receipt) {
  return "{\"encoding\": " + Quoted(receipt.encoding) + ", \"codec\": " + Quoted(receipt.codec) +
         ", \"sample_records\": " + std::to_string(receipt.sample_records) +
         ", \"sample_raw_bytes\": " + std::to_string(receipt.sample_raw_bytes) +
         ", \"sample_stored_bytes\": " + std::to_string(receipt.sample_stored_bytes) +
         ", \"decode_ns_per_record\": " + std::to_string(receipt.decode_ns_per_record) + "}";
}

std::string SumsText(const std::array<std::uint64_t, 3>& sums) {
  return "[" + std::to_string(sums[0]) + ", " + std::to_string(sums[1]) + ", " + std::to_string(sums[2]) + "]";
}

std::string StatisticsText(const ChannelSums& sums) {
  return "{\"pictures\": " + std::to_string(sums.pictures) + ", \"pixels\": " + std::to_string(sums.pixels) +
         ", \"sum\": " + SumsText(sums.sum) + ", \"sum_of_squares\": " + SumsText(sums.sum_of_squares) + "}";
}

// What a number of the manifest can be; readers in other languages have signed 64 bits at the best.
bool FitsNumbers(const ChannelSums& sums) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  const auto fits = [](std::uint64_t n) { return n <= kMost; };
  return fits(sums.pictures) && fits(sums.pixels) && std::all_of(sums.sum.begin(), sums.sum.end(), fits) &&
         std::all_of(sums.sum_of_squares.begin(), sums.sum_of_squares.end(), fits);
}

std::string RevisionLine(const Revision& revision) {
  return "{\"command\": " + Quoted(revision.command) + ", \"request\": \"" + revision.request.Hex() +
         "\", \"records\": " + std::to_string(revision.records) + "}";
}

}  // namespace

std::string Manifest::ToJson() const {
  const auto number = [](std::uint64_t n) { return std::to_string(n); };
  std::string out = "{\n";
  const auto add = [&](const char* key, const std::string& value) {
    out += "  \"" + std::string(key) + "\": " + value + ",\n";
  };
  add("format_version", number(format_version));
  if (!name.empty()) add("name", ByteString(name));
  add("format", Quoted(format));
  add("creator", Quoted(creator));
  add("dataset_digest", Quoted(dataset_digest.Hex()));
  add("request_digest", Quoted(request_digest.Hex()));
  add("records", number(records));
  add("bytes_in", number(bytes_in));
  add("bytes_out", number(bytes_out));
  add("bad_inputs", number(bad_inputs));
  add("options",
      Join(options, "{", "}", "\n    ", [](const auto& o) { return Quoted(o.first) + ": " + ByteString(o.second); }));
  add("label_kind", Quoted(Name(label_kind)));
  add("classes", Join(classes, "[", "]", "\n    ", [](const std::string& c) { return ByteString(c); }));
  add("encodings",
      Join(encodings, "{", "}", "\n    ", [&](const auto& e) { return Quoted(e.first) + ": " + number(e.second); }));
  add("codecs", Join(codecs, "{", "}", "\n    ", CodecText));
  if (!receipts.empty()) add("receipts", Join(receipts, "[", "]", "\n    ", ReceiptLine));
  add("widths", HistogramText(widths));
  add("heights", HistogramText(heights));
  if (statistics && FitsNumbers(*statistics)) add("statistics", StatisticsText(*statistics));
  if (!revisions.empty()) add("revisions", Join(revisions, "[", "]", "\n    ", RevisionLine));
  out += "  \"shards\": " + Join(shards, "[", "]", "\n    ", ShardLine) + "\n}\n";
  return out;
}

}  // namespace shardpack

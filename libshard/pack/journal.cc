#include "libshard/pack/journal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "libshard/pack/json_text.h"
#include "libshard/store/replace_file.h"
#include "libshard/store/text.h"
#include "libshard/store/unique_fd.h"

namespace shardpack {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;
constexpr off_t kMostBytes = off_t{1} << 30;

Json ToJson(const Histogram& histogram) {
  Json list = Json::array();
  for (const auto& [value, records] : histogram) list.push_back({value, records});
  return list;
}

Histogram HistogramOf(const Json& list) {
  Histogram histogram;
  for (const Json& pair : list) histogram[pair.at(0).get<std::uint32_t>()] = pair.at(1).get<std::uint64_t>();
  return histogram;
}

Json ToJson(const RecordCounts& counts) {
  Json out;
  out["records"] = counts.records;
  out["bytes_in"] = counts.bytes_in;
  out["widths"] = ToJson(counts.widths);
  out["heights"] = ToJson(counts.heights);
  out["encodings"] = Json::array();
  out["codecs"] = Json::array();
  for (std::size_t i = 0; i < counts.encodings.size(); ++i) {
    if (counts.encodings[i] > 0) out["encodings"].push_back({i, counts.encodings[i]});
    const CodecCount& codec = counts.codecs[i];
    if (codec.records > 0) out["codecs"].push_back({i, codec.records, codec.raw_bytes, codec.stored_bytes});
  }
  if (counts.statistics) {
    const ChannelSums& sums = *counts.statistics;
    out["statistics"] = {sums.pictures, sums.pixels, sums.sum, sums.sum_of_squares};
  }
  return out;
}

RecordCounts CountsOf(const Json& in) {
  RecordCounts counts;
  counts.records = in.at("records").get<std::uint64_t>();
  counts.bytes_in = in.at("bytes_in").get<std::uint64_t>();
  counts.widths = HistogramOf(in.at("widths"));
  counts.heights = HistogramOf(in.at("heights"));
  for (const Json& pair : in.at("encodings")) {
    counts.encodings.at(pair.at(0).get<std::size_t>()) = pair.at(1).get<std::uint64_t>();
  }
  for (const Json& row : in.at("codecs")) {
    counts.codecs.at(row.at(0).get<std::size_t>()) = {row.at(1).get<std::uint64_t>(), row.at(2).get<std::uint64_t>(),
                                                      row.at(3).get<std::uint64_t>()};
  }
  if (in.contains("statistics")) {
    const Json& sums = in["statistics"];
    counts.statistics =
        ChannelSums{sums.at(0).get<std::uint64_t>(), sums.at(1).get<std::uint64_t>(),
                    sums.at(2).get<std::array<std::uint64_t, 3>>(), sums.at(3).get<std::array<std::uint64_t, 3>>()};
  }
  return counts;
}

Json ToJson(const BadInput& bad) {
  Json out;
  PutBytes(out, "key", bad.key);
  PutBytes(out, "source", bad.source);
  PutBytes(out, "reason", bad.reason);
  if (bad.offset) out["offset"] = *bad.offset;
  out["io"] = bad.code == ErrorCode::kIo;
  return out;
}

std::string BytesOf(const Json& in, const std::string& name) {
  if (in.contains(name)) return in[name].get<std::string>();
  return FromHex(in.at(name + "_hex").get<std::string>()).value();
}

BadInput BadOf(const Json& in) {
  BadInput bad;
  bad.key = BytesOf(in, "key");
  bad.source = BytesOf(in, "source");
  bad.reason = BytesOf(in, "reason");
  if (in.contains("offset")) bad.offset = in["offset"].get<std::uint64_t>();
  bad.code = in.at("io").get<bool>() ? ErrorCode::kIo : ErrorCode::kBadInput;
  return bad;
}

std::string TextOf(const Digest128& request, const FinishedShard& shard) {
  Json out;
  out["version"] = kVersion;
  out["request"] = request.Hex();
  out["number"] = shard.number;
  if (shard.entry) {
    const ShardEntry& entry = *shard.entry;
    out["shard"] = {{"file", entry.file},
                    {"records", entry.records},
                    {"bytes", entry.bytes},
                    {"digest", entry.digest.Hex()},
                    {"index_digest", entry.index_digest.Hex()}};
  }
  out["counts"] = ToJson(shard.counts);
  out["bad"] = Json::array();
  for (const BadInput& bad : shard.bad) out["bad"].push_back(ToJson(bad));
  std::string text = out.dump() + "\n";
  return text + Xxh3_128(AsBytes(text)).Hex() + "\n";
}

// Throws where a field is missing or of another kind.
std::optional<FinishedShard> Parse(const std::string& text, const Digest128& request, std::uint64_t number) {
  const auto end = text.find('\n');
  if (end == std::string::npos) return std::nullopt;
  const std::string_view line(text.data(), end + 1);
  if (text.substr(end + 1) != Xxh3_128(AsBytes(line)).Hex() + "\n") return std::nullopt;
  const Json in = Json::parse(line);
  if (in.at("version") != kVersion || in.at("request") != request.Hex() || in.at("number") != number)
    return std::nullopt;
  FinishedShard shard;
  shard.number = number;
  if (in.contains("shard")) {
    const Json& entry = in["shard"];
    shard.entry =
        ShardEntry{entry.at("file").get<std::string>(), entry.at("records").get<std::uint64_t>(),
                   entry.at("bytes").get<std::uint64_t>(), Digest128::FromHex(entry.at("digest").get<std::string>()),
                   Digest128::FromHex(entry.at("index_digest").get<std::string>())};
    if (shard.entry->file.find('/') != std::string::npos) return std::nullopt;
  }
  shard.counts = CountsOf(in.at("counts"));
  for (const Json& bad : in.at("bad")) shard.bad.push_back(BadOf(bad));
  return shard;
}

// Empty where it cannot be read whole.
std::string ReadSmall(const std::filesystem::path& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status;
  if (!fd) {
    // Not missing but refused: to do the shard again would not help.
    if (errno == EMFILE || errno == ENFILE) ThrowSystemError(errno, "open", path.native());
    return "";
  }
  if (fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_size > kMostBytes) return "";
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = read(fd.get(), text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return "";
    done += static_cast<std::size_t>(n);
  }
  return text;
}

}  // namespace

std::string FinishedName(std::uint64_t number) {
  char name[32];
  std::snprintf(name, sizeof name, "finished-%05llu", static_cast<unsigned long long>(number));
  return name;
}

void WriteFinished(const std::filesystem::path& work, const std::string& token, const Digest128& request,
                   const FinishedShard& shard) {
  const std::string name = FinishedName(shard.number);
  ReplaceFile(work / (name + "." + token + ".partial"), work / name, TextOf(request, shard));
}

std::optional<FinishedShard> LoadFinished(const std::filesystem::path& work, const Digest128& request,
                                          std::uint64_t number) {
  const std::string text = ReadSmall(work / FinishedName(number));
  if (text.empty()) return std::nullopt;
  try {
    return Parse(text, request, number);
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  } catch (const std::logic_error&) {  // a number out of range
    return std::nullopt;
  }
}

}  // namespace shardpack

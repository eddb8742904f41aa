#include <sys/stat.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "libshard/image/versions.h"
#include "libshard/pack/plan_builder.h"
#include "libshard/pack/plan_file.h"
#include "libshard/store/coding.h"
#include "shardpack/error.h"

namespace shardpack {
namespace {

constexpr std::uint64_t kBatchInputs = 64;
constexpr std::uint64_t kBatchBytes = 1 << 20;

std::string_view Text(SourceKind kind) {
  switch (kind) {
    case SourceKind::kAuto:
      return "auto";
    case SourceKind::kFolder:
      return "folder";
    case SourceKind::kCsv:
      return "csv";
    case SourceKind::kJsonl:
      return "jsonl";
    case SourceKind::kTar:
      return "tar";
    case SourceKind::kZip:
      return "zip";
    case SourceKind::kTfrecord:
      return "tfrecord";
    case SourceKind::kDataset:
      return "dataset";
  }
  return "";
}

std::string_view Text(RecordOrder order) {
  switch (order) {
    case RecordOrder::kDefault:
      return "default";
    case RecordOrder::kName:
      return "name";
    case RecordOrder::kSource:
      return "source";
    case RecordOrder::kShuffled:
      return "shuffled";
  }
  return "";
}

std::string_view Text(ImageMode images) {
  switch (images) {
    case ImageMode::kKeep:
      return "keep";
    case ImageMode::kLossless:
      return "lossless";
    case ImageMode::kJpeg:
      return "jpeg";
    case ImageMode::kPixels:
      return "pixels";
  }
  return "";
}

std::string_view Text(Chroma chroma) {
  switch (chroma) {
    case Chroma::kKeep:
      return "keep";
    case Chroma::k444:
      return "444";
    case Chroma::k422:
      return "422";
    case Chroma::k420:
      return "420";
  }
  return "";
}

std::string_view Text(Compression compression) {
  switch (compression) {
    case Compression::kAuto:
      return "auto";
    case Compression::kNone:
      return "none";
    case Compression::kZstd:
      return "zstd";
    case Compression::kArchive:
      return "archive";
  }
  return "";
}

std::string_view Text(VerifyImages verify) {
  switch (verify) {
    case VerifyImages::kDecode:
      return "decode";
    case VerifyImages::kHeader:
      return "header";
    case VerifyImages::kNone:
      return "none";
  }
  return "";
}

std::string_view Text(Statistics statistics) {
  switch (statistics) {
    case Statistics::kNone:
      return "none";
    case Statistics::kSample:
      return "sample";
    case Statistics::kAll:
      return "all";
  }
  return "";
}

// The shortest decimal that reads back as the same number.
std::string Text(double number) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, number).ptr};
}

std::string Text(const ResizeTo& resize) {
  if (resize.short_side > 0) return std::to_string(resize.short_side);
  return std::to_string(resize.width) + "x" + std::to_string(resize.height);
}

// One text for a list, and no two lists the same one.
std::string Joined(const std::vector<std::string>& globs) {
  std::string text;
  for (std::size_t i = 0; i < globs.size(); ++i) {
    if (i > 0) text += ", ";
    for (const char c : Escaped(globs[i])) text += c == ',' ? "\\x2c" : std::string(1, c);
  }
  return text;
}

void PutPictureOptions(const PackOptions& options, std::map<std::string, std::string>& out) {
  out["images"] = Text(options.images);
  if (options.images == ImageMode::kJpeg) {
    out["quality"] = std::to_string(options.quality);
    out["chroma"] = Text(options.chroma);
  }
  if (options.resize) out["resize"] = Text(*options.resize);
  out["verify-images"] = Text(options.verify_images);
  out["max-pixels"] = std::to_string(options.limits.max_pixels);
  if (options.statistics != Statistics::kNone) out["statistics"] = Text(options.statistics);
}

void PutSourceOptions(const PackOptions& options, std::map<std::string, std::string>& out) {
  const PackOptions defaults;
  out["from"] = Text(options.from);
  const auto put = [&](const char* name, const std::string& value, const std::string& usual) {
    if (value != usual) out[name] = value;
  };
  put("path-column", options.path_column, defaults.path_column);
  put("label-column", options.label_column, defaults.label_column);
  put("image-feature", options.image_feature, defaults.image_feature);
  put("label-feature", options.label_feature, defaults.label_feature);
  out["order"] = Text(options.order);
  if (options.order == RecordOrder::kShuffled) out["seed"] = std::to_string(options.order_seed);
  if (!options.include.empty()) out["include"] = Joined(options.include);
  if (!options.exclude.empty()) out["exclude"] = Joined(options.exclude);
  if (options.share) out["split"] = Text(options.share->begin) + ".." + Text(options.share->end);
  if (options.limit) out["limit"] = std::to_string(*options.limit);
  if (options.classes) out["classes"] = "given";
}

}  // namespace

std::map<std::string, std::string> ContentOptions(const PackOptions& options) {
  std::map<std::string, std::string> out;
  PutSourceOptions(options, out);
  PutPictureOptions(options, out);
  out["compression"] = Text(options.compression);
  if (options.zstd_level) out["zstd-level"] = std::to_string(*options.zstd_level);
  if (options.dictionary_bytes) out["dictionary"] = std::to_string(*options.dictionary_bytes);
  if (options.shard_records) {
    out["shard-records"] = std::to_string(*options.shard_records);
  } else {
    out["shard-size"] = std::to_string(options.shard_bytes);
  }
  // Other versions may compress to other bytes, and find other pictures bad.
  out["zstd"] = ZSTD_versionString();
  out["image-libraries"] = ImageLibraryVersions();
  return out;
}

std::vector<std::string> SourceMarks(const PackOptions& options) {
  std::vector<std::string> marks;
  for (const std::filesystem::path& source : options.sources) {
    std::string mark = std::filesystem::absolute(source).lexically_normal().native();
    struct stat status;
    if (stat(source.c_str(), &status) != 0) ThrowSystemError(errno, "look at", source.native());
    // A dataset is told by its manifest, which is replaced whenever the dataset changes.
    if (S_ISDIR(status.st_mode) && stat((source / kManifestName).c_str(), &status) != 0) {
      marks.push_back(mark + (mark.ends_with('/') ? "" : "/"));
      continue;
    }
    // The time as well: a list whose labels were corrected may have kept its size.
    mark += ": " + std::to_string(status.st_size) + " bytes of " + std::to_string(status.st_mtim.tv_sec) + "." +
            std::to_string(status.st_mtim.tv_nsec);
    marks.push_back(std::move(mark));
  }
  return marks;
}

std::uint64_t SyncMarker(const Digest128& request, std::uint64_t shard) {
  std::string text = "shardpack sync";
  char numbers[24];
  Store(numbers, request.high);
  Store(numbers + 8, request.low);
  Store(numbers + 16, shard);
  return Xxh3_64(AsBytes(text.append(numbers, sizeof numbers)));
}

std::vector<InputRange> CutIntoBatches(const std::vector<PlannedInput>& inputs) {
  std::vector<InputRange> batches;
  InputRange open;
  for (std::uint64_t i = 0; i < inputs.size(); ++i) {
    const std::uint64_t size = inputs[i].size;
    const bool passes = size > kBatchBytes - std::min(open.bytes, kBatchBytes);
    if (open.size() >= kBatchInputs || (open.size() > 0 && passes)) {
      batches.push_back(open);
      open = {i, i, 0};
    }
    open.end = i + 1;
    open.bytes += size;
  }
  if (open.size() > 0) batches.push_back(open);
  return batches;
}

std::uint64_t FirstNewShard(const Manifest& manifest) {
  std::uint64_t first = manifest.shards.size();
  constexpr std::string_view kPrefix = "shard-";
  for (const ShardEntry& shard : manifest.shards) {
    if (!shard.file.starts_with(kPrefix)) continue;
    std::uint64_t number = 0;
    const char* digits = shard.file.data() + kPrefix.size();
    const auto [end, error] = std::from_chars(digits, shard.file.data() + shard.file.size(), number);
    if (error == std::errc() && end != digits && number + 1 > first) first = number + 1;
  }
  return first;
}

}  // namespace shardpack

#include "tools/shardpack/convert_parse.h"

#include <charconv>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "shardpack/error.h"
#include "shardpack/manifest.h"
#include "tools/common/human.h"
#include "tools/common/run_main.h"

namespace shardpack::tools {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostClassBytes = 64 << 20;  // of a list; a million names of 64 bytes
constexpr int kMostLevel = 22;                     // zstd's

[[noreturn]] void Refuse(const std::string& option, const std::string& value, const std::string& why) {
  throw UsageError{option + " '" + Escaped(value) + "': " + why};
}

template <typename T>
std::optional<T> WholeNumberOf(std::string_view text) {
  T number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<double> DecimalOf(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

template <typename T>
T OneOfWords(const std::string& option, const std::string& value, const std::map<std::string, T>& words) {
  const auto found = words.find(value);
  if (found != words.end()) return found->second;
  std::string list;
  for (const auto& [word, meaning] : words) list += (list.empty() ? "" : ", ") + word;
  Refuse(option, value, "is none of " + list);
}

}  // namespace

SourceKind ParseFrom(const std::string& text) {
  return OneOfWords<SourceKind>("--from", text,
                                {{"auto", SourceKind::kAuto},
                                 {"folder", SourceKind::kFolder},
                                 {"csv", SourceKind::kCsv},
                                 {"jsonl", SourceKind::kJsonl},
                                 {"tar", SourceKind::kTar},
                                 {"zip", SourceKind::kZip},
                                 {"tfrecord", SourceKind::kTfrecord},
                                 {"dataset", SourceKind::kDataset}});
}

void ParseOrder(const std::string& text, PackOptions& options) {
  constexpr std::string_view kShuffled = "shuffled:";
  if (text.starts_with(kShuffled)) {
    const auto seed = WholeNumberOf<std::uint64_t>(std::string_view(text).substr(kShuffled.size()));
    if (!seed) Refuse("--order", text, "the seed is no whole number");
    options.order = RecordOrder::kShuffled;
    options.order_seed = *seed;
    return;
  }
  options.order = OneOfWords<RecordOrder>(
      "--order", text,
      {{"name", RecordOrder::kName}, {"source", RecordOrder::kSource}, {"shuffled", RecordOrder::kShuffled}});
}

std::vector<KeyShare> ParseSplit(const std::string& text) {
  std::vector<KeyShare> shares;
  std::set<std::string> names;
  std::istringstream parts(text);
  double begin = 0;
  for (std::string part; std::getline(parts, part, ',');) {
    const auto equals = part.rfind('=');
    const auto fraction =
        equals == std::string::npos ? std::nullopt : DecimalOf(std::string_view(part).substr(equals + 1));
    if (!fraction || !(*fraction > 0 && *fraction <= 1)) {
      Refuse("--split", text, "say NAME=FRACTION,..., each fraction above 0 and at most 1");
    }
    KeyShare share;
    share.name = part.substr(0, equals);
    if (share.name.empty() || share.name.starts_with('.') || share.name.find('/') != std::string::npos) {
      Refuse("--split", text, "'" + Escaped(share.name) + "' is no name of a folder");
    }
    if (!names.insert(share.name).second) Refuse("--split", text, "'" + Escaped(share.name) + "' comes twice");
    share.begin = begin;
    share.end = begin + *fraction;
    // 0.7 + 0.2 + 0.1 is a little more than 1 in binary.
    constexpr double kRounding = 1e-9;
    if (share.end > 1 + kRounding) Refuse("--split", text, "the fractions are more than 1 together");
    if (share.end > 1 - kRounding) share.end = 1;
    begin = share.end;
    shares.push_back(std::move(share));
  }
  if (shares.empty()) Refuse("--split", text, "names no share");
  return shares;
}

void ParseFormat(const std::string& format, const std::string& hdf5_layout) {
  if (format == "hdf5") throw UsageError{"--format hdf5: this version of shardpack does not do that"};
  if (format != "record") Refuse("--format", format, "is none of record, hdf5");
  if (!hdf5_layout.empty()) Refuse("--hdf5-layout", hdf5_layout, "belongs to --format hdf5");
}

ImageMode ParseImages(const std::string& text) {
  return OneOfWords<ImageMode>("--images", text,
                               {{"keep", ImageMode::kKeep},
                                {"lossless", ImageMode::kLossless},
                                {"jpeg", ImageMode::kJpeg},
                                {"pixels", ImageMode::kPixels}});
}

ResizeTo ParseResize(const std::string& text) {
  constexpr std::uint32_t kLargestSide = 65535;
  const auto side = [&](std::string_view digits) {
    const auto number = WholeNumberOf<std::uint32_t>(digits);
    if (!number || *number == 0 || *number > kLargestSide) {
      Refuse("--resize", text, "say SHORT (pixels of the short side) or WIDTHxHEIGHT, each from 1 to 65535");
    }
    return *number;
  };
  const auto x = text.find('x');
  ResizeTo to;
  if (x == std::string::npos) {
    to.short_side = side(text);
  } else {
    to.width = side(std::string_view(text).substr(0, x));
    to.height = side(std::string_view(text).substr(x + 1));
  }
  return to;
}

void ParseCompression(const std::string& text, PackOptions& options) {
  if (text == "gzip" || text.starts_with("gzip:")) {
    Refuse("--compression", text, "belongs to --format hdf5, whose readers need no plugin for it");
  }
  constexpr std::string_view kZstd = "zstd:";
  if (text.starts_with(kZstd)) {
    const auto level = WholeNumberOf<int>(std::string_view(text).substr(kZstd.size()));
    if (!level || *level < 1 || *level > kMostLevel) Refuse("--compression", text, "levels go from 1 to 22");
    options.compression = Compression::kZstd;
    options.zstd_level = *level;
    return;
  }
  options.compression = OneOfWords<Compression>("--compression", text,
                                                {{"auto", Compression::kAuto},
                                                 {"none", Compression::kNone},
                                                 {"zstd", Compression::kZstd},
                                                 {"archive", Compression::kArchive}});
}

void ParseDictionary(const std::string& text, PackOptions& options) {
  if (text == "auto") return;
  options.dictionary_bytes = text == "none" ? 0 : ParseBytes("--dictionary", text);
}

void ParseMaxBad(const std::string& text, PackOptions& options) {
  const bool percent = text.ends_with('%');
  const std::string_view digits = std::string_view(text).substr(0, text.size() - (percent ? 1 : 0));
  if (percent) {
    const auto share = DecimalOf(digits);
    if (share && *share >= 0 && *share <= 100) {
      options.max_bad_share = *share / 100;
      return;
    }
  } else if (const auto count = WholeNumberOf<std::uint64_t>(digits)) {
    options.max_bad = *count;
    return;
  }
  throw UsageError{"--max-bad: '" + Escaped(text) + "' is neither a number of inputs nor a share such as 0.1%"};
}

std::vector<std::string> ReadClasses(const fs::path& path) {
  if (fs::is_directory(path) || path.filename() == kManifestName) {
    const Manifest manifest = Manifest::Load(fs::is_directory(path) ? path : path.parent_path());
    if (manifest.label_kind != LabelKind::kClass)
      throw UsageError{"--classes: the labels of " + Escaped(path.native()) + " are no classes"};
    return manifest.classes;
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) throw UsageError{"--classes: cannot read " + Escaped(path.native())};
  std::string text(kMostClassBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kMostClassBytes)
    throw UsageError{"--classes: " + Escaped(path.native()) + " is no list of classes"};
  std::vector<std::string> classes;
  std::istringstream lines(std::move(text));
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) classes.push_back(line);
  }
  if (classes.empty()) throw UsageError{"--classes: " + Escaped(path.native()) + " names no class"};
  return classes;
}

}  // namespace shardpack::tools

#include "libshard/pack/given_options.h"

#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include "shardpack/error.h"

namespace shardpack {
namespace {

constexpr std::string_view kNames[] = {"images",      "quality",    "chroma",     "resize",
                                       "compression", "zstd-level", "dictionary", "verify-images",
                                       "max-pixels",  "statistics", "shard-size", "shard-records"};

class Written {
 public:
  explicit Written(const std::map<std::string, std::string>& options) : options_(options) {}

  const std::string* Find(const char* name) const {
    const auto found = options_.find(name);
    return found == options_.end() ? nullptr : &found->second;
  }
  [[noreturn]] void Refuse(const char* name) const {
    throw Error(ErrorCode::kUnsupported, "the dataset was made with " + std::string(name) + " " +
                                             Escaped(options_.at(name)) + ", which this program does not know");
  }
  template <typename T>
  bool Number(const char* name, T& value) const {
    const std::string* const text = Find(name);
    if (text == nullptr) return false;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
    if (error != std::errc() || end != text->data() + text->size()) Refuse(name);
    return true;
  }
  template <typename T, std::size_t N>
  void Word(const char* name, const std::pair<std::string_view, T> (&words)[N], T& value) const {
    const std::string* const text = Find(name);
    if (text == nullptr) return;
    for (const auto& [word, meaning] : words) {
      if (*text != word) continue;
      value = meaning;
      return;
    }
    Refuse(name);
  }
  template <typename T>
  std::optional<T> Optional(const char* name) const {
    T value{};
    return Number(name, value) ? std::optional<T>(value) : std::nullopt;
  }
  // "256" or "320x200".
  std::optional<ResizeTo> Resize() const {
    const std::string* const text = Find("resize");
    if (text == nullptr) return std::nullopt;
    ResizeTo size;
    const char* const end = text->data() + text->size();
    auto [at, error] = std::from_chars(text->data(), end, size.width);
    if (error == std::errc() && at == end) {
      size.short_side = std::exchange(size.width, 0);
      return size;
    }
    if (error != std::errc() || *at != 'x') Refuse("resize");
    const auto height = std::from_chars(at + 1, end, size.height);
    if (height.ec != std::errc() || height.ptr != end) Refuse("resize");
    return size;
  }

 private:
  const std::map<std::string, std::string>& options_;
};

}  // namespace

bool IsContentOption(const std::string& name) {
  for (const std::string_view known : kNames) {
    if (name == known) return true;
  }
  return false;
}

void TakeContentOptions(const std::map<std::string, std::string>& options, PackOptions& out) {
  const Written written(options);
  const PackOptions defaults;
  out.images = defaults.images;
  out.quality = defaults.quality;
  out.chroma = defaults.chroma;
  out.compression = defaults.compression;
  out.verify_images = defaults.verify_images;
  out.statistics = defaults.statistics;
  out.limits = defaults.limits;
  out.shard_bytes = defaults.shard_bytes;
  written.Word("images",
               {std::pair<std::string_view, ImageMode>{"keep", ImageMode::kKeep},
                {"lossless", ImageMode::kLossless},
                {"jpeg", ImageMode::kJpeg},
                {"pixels", ImageMode::kPixels}},
               out.images);
  written.Word("chroma",
               {std::pair<std::string_view, Chroma>{"keep", Chroma::kKeep},
                {"444", Chroma::k444},
                {"422", Chroma::k422},
                {"420", Chroma::k420}},
               out.chroma);
  written.Word("compression",
               {std::pair<std::string_view, Compression>{"auto", Compression::kAuto},
                {"none", Compression::kNone},
                {"zstd", Compression::kZstd},
                {"archive", Compression::kArchive}},
               out.compression);
  written.Word("verify-images",
               {std::pair<std::string_view, VerifyImages>{"decode", VerifyImages::kDecode},
                {"header", VerifyImages::kHeader},
                {"none", VerifyImages::kNone}},
               out.verify_images);
  written.Word("statistics",
               {std::pair<std::string_view, Statistics>{"sample", Statistics::kSample}, {"all", Statistics::kAll}},
               out.statistics);
  written.Number("quality", out.quality);
  written.Number("max-pixels", out.limits.max_pixels);
  written.Number("shard-size", out.shard_bytes);
  out.shard_records = written.Optional<std::uint64_t>("shard-records");
  out.zstd_level = written.Optional<int>("zstd-level");
  out.dictionary_bytes = written.Optional<std::uint64_t>("dictionary");
  out.resize = written.Resize();
}

}  // namespace shardpack

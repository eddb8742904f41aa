#include <charconv>
#include <memory>

#include "shardpack/dataset.h"
#include "shardpack/error.h"
#include "shardpack/image.h"
#include "shardpack/transcode.h"
#include "tools/common/human.h"
#include "tools/common/run_main.h"
#include "tools/common/validators.h"
#include "tools/shardpack/commands.h"

namespace shardpack::tools {
namespace {

constexpr char kFooter[] =
    R"(A bare word is a key first, then an index. Filtered pixels (list says "pixels") come as the PNG that holds them.

Examples:
  shardpack cat packed cats/1.jpg > 1.jpg              the bytes as they went in
  shardpack cat packed 0 --decode png > first.png      the picture: upright, 8-bit RGB
  shardpack cat packed --index 17 --decode ppm | display)";

struct Arguments {
  std::string dataset, which, decode;
  bool key = false, index = false;
};

std::optional<std::uint64_t> AsIndex(const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::uint64_t FindRecord(const Dataset& dataset, const Arguments& arguments) {
  if (!arguments.index) {
    if (const auto found = dataset.Find(arguments.which)) return *found;
    if (arguments.key) throw UsageError{"no record has the key " + Escaped(arguments.which)};
  }
  const auto index = AsIndex(arguments.which);
  if (!index)
    throw UsageError{arguments.index ? "'" + Escaped(arguments.which) + "' is no index"
                                     : "no record has the key " + Escaped(arguments.which)};
  if (*index >= dataset.size())
    throw UsageError{"there is no record " + arguments.which + ": the dataset has " +
                     Counted(dataset.size(), "record")};
  return *index;
}

[[noreturn]] void ThrowFor(const Dataset& dataset, std::uint64_t index, const Error& error) {
  throw Error(error.code(),
              "record " + std::to_string(index) + " (" + Escaped(dataset.Key(index)) + "): " + error.reason());
}

std::vector<std::byte> PngOfPixels(const Dataset& dataset, std::uint64_t index, Bytes pixels,
                                   const ImageLimits& limits) {
  try {
    Samples samples;
    DecodePixels(pixels, limits, samples);
    return EncodePng(samples);
  } catch (const Error& error) {
    ThrowFor(dataset, index, error);
  }
}

void RunCat(const Arguments& arguments) {
  const Dataset dataset = Dataset::Open(arguments.dataset);
  const std::uint64_t index = FindRecord(dataset, arguments);
  std::vector<std::byte> bytes;
  dataset.Read(index, bytes);
  // The picture was let in when it was packed; what it takes to show one is no danger.
  constexpr ImageLimits kNoLimits{~std::uint64_t{0} >> 8};
  if (arguments.decode.empty()) {
    if (dataset.Info(index).encoding == Encoding::kPixels) bytes = PngOfPixels(dataset, index, bytes, kNoLimits);
  } else {
    ImageDecoder decoder(kNoLimits);
    Image picture;
    try {
      decoder.Decode(bytes, picture);
    } catch (const Error& error) {
      ThrowFor(dataset, index, error);
    }
    bytes = arguments.decode == "png" ? EncodePng(picture) : EncodePpm(picture);
  }
  WriteOut(AsText(bytes));
}

}  // namespace

void AddCat(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("cat", "Write one record's image to standard output");
  const auto arguments = std::make_shared<Arguments>();
  command->footer(kFooter);
  AddDatasetOption(*command, arguments->dataset);
  command->add_option("RECORD", arguments->which, "Its key or its index")
      ->required()
      ->check(NotEmpty())
      ->type_name("KEY|INDEX");
  auto* key = command->add_flag("--key", arguments->key, "RECORD is a key");
  command->add_flag("--index", arguments->index, "RECORD is an index")->excludes(key);
  command->add_option("--decode", arguments->decode, "The picture in this format, instead of the record's bytes")
      ->check(OneOf({"ppm", "png"}))
      ->type_name("ppm|png");
  command->callback([arguments, &status] {
    RunCat(*arguments);
    status = 0;
  });
}

}  // namespace shardpack::tools

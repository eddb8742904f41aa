#include "tools/shardpack/convert_options.h"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "shardpack/error.h"
#include "shardpack/manifest.h"
#include "tools/common/human.h"
#include "tools/common/run_main.h"
#include "tools/common/validators.h"

namespace shardpack::tools {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostClassBytes = 64 << 20;  // of a list; a million names of 64 bytes

constexpr char kFooter[] =
    R"(Each folder directly under SRC is a class; pictures in deeper folders belong to their top folder. The key of
a record is its path under SRC. Bytes are packed as they are.

Examples:
  shardpack convert train/ -o packed/train
  shardpack convert train/ -o packed/train --shard-size 1GiB --max-bad 0.1%
  shardpack convert val/ -o packed/val --classes packed/train     the same class numbers as in train
  shardpack convert train/ -o packed/train --dry-run              what would be written

Exit status: 0 done, 1 done without the bad inputs named in OUT/bad_inputs.jsonl, 2 wrong usage, 3 bad input,
4 the system refused (disk full, permission), 130 interrupted.)";

// What the documentation promises and another version does: name, the value that means "as this version does it".
const std::map<std::string, std::string>& SingleValued() {
  static const std::map<std::string, std::string> kOptions = {
      {"--compression", "auto"}, {"--dictionary", "auto"}, {"--order", "name"}, {"--part", "none"},
      {"--hdf5-layout", ""},     {"--resize", ""},         {"--quality", ""},   {"--split", ""},
      {"--limit", ""},           {"--include", ""},        {"--exclude", ""},   {"--path-column", ""},
      {"--label-column", ""}};
  return kOptions;
}

void RefuseOthers(const std::string& option, const std::string& value, std::initializer_list<std::string_view> known,
                  std::initializer_list<std::string_view> other_versions) {
  for (const auto candidate : known) {
    if (value == candidate) return;
  }
  for (const auto candidate : other_versions) {
    if (value == candidate) throw UsageError{option + " " + value + ": this version of shardpack does not do that"};
  }
  std::string list;
  for (const auto candidate : known) list += (list.empty() ? "" : ", ") + std::string(candidate);
  throw UsageError{option + ": '" + Escaped(value) + "' is none of " + list};
}

std::vector<std::string> ReadClasses(const fs::path& path) {
  if (fs::is_directory(path) || path.filename() == kManifestName) {
    return Manifest::Load(fs::is_directory(path) ? path : path.parent_path()).classes;
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

void ParseMaxBad(const std::string& text, PackOptions& options) {
  const bool percent = text.ends_with('%');
  const char* begin = text.data();
  const char* end = text.data() + text.size() - (percent ? 1 : 0);
  std::from_chars_result result{};
  if (percent) {
    double value = 0;
    result = std::from_chars(begin, end, value, std::chars_format::fixed);
    if (!(value >= 0 && value <= 100)) result.ec = std::errc::result_out_of_range;
    options.max_bad_share = value / 100;
  } else {
    std::uint64_t value = 0;
    result = std::from_chars(begin, end, value);
    options.max_bad = value;
  }
  if (result.ec != std::errc() || result.ptr != end)
    throw UsageError{"--max-bad: '" + Escaped(text) + "' is neither a number of inputs nor a share such as 0.1%"};
}

}  // namespace

ProgressStyle ParseProgressStyle(const std::string& text) {
  if (text == "plain") return ProgressStyle::kPlain;
  return text == "none" ? ProgressStyle::kNone : ProgressStyle::kAuto;
}

void DeclareConvertOptions(CLI::App& command, ConvertArguments& a) {
  command.footer(kFooter);
  command.add_option("SRC", a.sources, "Folders to pack: one sub-folder a class, nested or flat")
      ->required()
      ->check(NotEmpty())
      ->type_name("");
  command.add_option("-o,--output", a.output, "Folder of the new dataset")
      ->required()
      ->check(NotEmpty())
      ->type_name("OUT");
  command.add_option("--from", a.from, "What SRC is: auto or folder")->capture_default_str()->type_name("KIND");
  command.add_option("--format", a.format, "What shards are: record")->capture_default_str()->type_name("FORMAT");
  command.add_option("--images", a.images, "keep: bytes as they are")->capture_default_str()->type_name("HOW");
  auto* size = command.add_option("--shard-size", a.shard_size, "Bytes of input a shard")
                   ->capture_default_str()
                   ->type_name("SIZE");
  command.add_option("--shard-records", a.shard_records, "Records a shard, instead of --shard-size")
      ->check(WholeNumber(1))
      ->type_name("N")
      ->excludes(size);
  command
      .add_option("--classes", a.classes,
                  "Class numbers as in a file (one name a line) or another dataset; else byte order of names")
      ->check(NotEmpty())
      ->type_name("FILE|DATASET");
  command.add_option("--on-error", a.on_error, "A bad input is left out and listed (skip), or ends the run (fail)")
      ->capture_default_str()
      ->check(OneOf({"skip", "fail"}))
      ->type_name("skip|fail");
  command.add_option("--max-bad", a.max_bad, "Most bad inputs that are left out: a number, or a share of all")
      ->check(NotEmpty())
      ->type_name("N|P%");
  command
      .add_option("--verify-images", a.verify_images,
                  "How each image is checked: decode it, read its header and look for its end, or only read what the "
                  "index needs")
      ->capture_default_str()
      ->check(OneOf({"decode", "header", "none"}))
      ->type_name("decode|header|none");
  command.add_option("--max-pixels", a.max_pixels, "Pictures of more pixels are bad inputs")
      ->capture_default_str()
      ->check(WholeNumber(1))
      ->type_name("N");
  command.add_option("--threads", a.threads, "Threads; else all that this process may use")
      ->check(WholeNumber(1, 4096))
      ->type_name("N");
  command.add_option("--memory", a.memory, "Most memory for images at work")->capture_default_str()->type_name("SIZE");
  command.add_option("--name", a.name, "A name to keep in the dataset")->type_name("NAME");
  command.add_flag("--overwrite", a.overwrite,
                   "Replace another dataset in OUT, which stays whole until the new one is complete");
  command.add_flag("--dry-run", a.dry_run, "Say what would be written, and write nothing");
  AddProgressOption(command, a.progress);
  command.add_flag("--json", a.json, "The result as one line of JSON at the end of standard output");
  // Not in --help: those that another version does.
  for (const auto& [name, value] : SingleValued()) command.add_option(name, a.single_valued[name])->group("");
  command.add_flag("--rescan")->group("");
}

PackOptions ToPackOptions(const CLI::App& command, const ConvertArguments& a) {
  RefuseOthers("--from", a.from, {"auto", "folder"}, {"csv", "jsonl", "tar", "zip", "tfrecord", "dataset"});
  RefuseOthers("--format", a.format, {"record"}, {"hdf5"});
  RefuseOthers("--images", a.images, {"keep"}, {"lossless", "jpeg", "pixels"});
  for (const auto& [name, only] : SingleValued()) {
    const std::string& value = a.single_valued.at(name);
    if (command.count(name) > 0 && value != only)
      throw UsageError{name + " " + Escaped(value) + ": this version of shardpack does not do that"};
  }
  if (command.count("--rescan") > 0) throw UsageError{"--rescan: this version of shardpack does not do that"};

  PackOptions options;
  options.sources.assign(a.sources.begin(), a.sources.end());
  options.output = a.output;
  for (const fs::path& source : options.sources) {
    if (!fs::exists(source)) throw UsageError{"there is no " + Escaped(source.native())};
    if (!fs::is_directory(source))
      throw UsageError{Escaped(source.native()) + " is no folder: this version of shardpack packs folders"};
  }
  options.shard_bytes = ParseBytes("--shard-size", a.shard_size);
  if (a.shard_records > 0) options.shard_records = a.shard_records;
  if (!a.classes.empty()) options.classes = ReadClasses(a.classes);
  options.on_error = a.on_error == "fail" ? OnError::kFail : OnError::kSkip;
  if (!a.max_bad.empty()) ParseMaxBad(a.max_bad, options);
  options.verify_images = a.verify_images == "decode"   ? VerifyImages::kDecode
                          : a.verify_images == "header" ? VerifyImages::kHeader
                                                        : VerifyImages::kNone;
  options.limits.max_pixels = a.max_pixels;
  options.threads = a.threads;
  options.memory_bytes = ParseBytes("--memory", a.memory);
  options.overwrite = a.overwrite;
  options.dry_run = a.dry_run;
  options.name = a.name;
  return options;
}

}  // namespace shardpack::tools

#include "tools/shardpack/convert_options.h"

#include <filesystem>

#include "shardpack/error.h"
#include "tools/common/human.h"
#include "tools/common/run_main.h"
#include "tools/common/validators.h"
#include "tools/shardpack/convert_parse.h"
#include "tools/shardpack/part.h"

namespace shardpack::tools {
namespace {

namespace fs = std::filesystem;

constexpr char kConvertFooter[] =
    R"(SRC: folders with a sub-folder a class (deeper folders belong to their top one), CSV or JSON lines with columns
path and label, WebDataset tars (.tar, .tar.gz, .tar.zst), zip archives, TFRecord files, another dataset, HDF5 files
with arrays images and labels. Several at once; --from where their names and first bytes mislead.

Killed at any moment and run again, the same command goes on where it stopped, and the result is byte for byte that of
an undisturbed run, by any number of threads and processes. Started by srun or mpirun, each process does its part.

Examples:
  shardpack convert train/ -o packed/train
  shardpack convert train/ -o packed/train --shard-size 1GiB --max-bad 0.1%
  shardpack convert val/ -o packed/val --classes packed/train     the same class numbers as in train
  shardpack convert train/ -o packed/train --dry-run              what would be written
  shardpack convert photos.csv -o packed --label-column species   a list: paths are relative to it
  shardpack convert shard-*.tar -o packed --split train=0.9,val=0.1      packed/train and packed/val
  shardpack convert photos/ -o small --images jpeg --resize 256   short side 256, quality 90
  shardpack convert photos/ -o fast --images lossless             the same pixels, cheaper to decode
  mpirun -n 8 shardpack convert photos/ -o /shared/packed         eight processes, the same bytes

Exit status: 0 done, 1 done without the bad inputs named in OUT/bad_inputs.jsonl, 2 wrong usage, 3 bad input,
4 the system refused (disk full, permission), 130 interrupted. A process that did one of several parts: 0.)";

constexpr char kPlanFooter[] =
    R"(The first step of convert alone: scans the sources, decides which input goes into which shard, and writes
OUT/.shardpack/plan. Takes the options of convert; the convert that follows, or its parts on many machines, must have
the same ones.

Examples:
  shardpack plan photos/ -o /shared/packed
  shardpack convert photos/ -o /shared/packed --part 0/4          the first of four
  shardpack status /shared/packed                                 what is done

Exit status: 0 done, 2 wrong usage or another plan is there, 3 bad input, 4 the system refused, 130 interrupted.)";

void DeclareSources(CLI::App& command, ConvertArguments& a) {
  command.add_option("SRC", a.sources, "What is packed: folders, lists, archives, datasets")
      ->required()
      ->check(NotEmpty())
      ->type_name("");
  command.add_option("-o,--output", a.output, "Folder of the new dataset")
      ->required()
      ->check(NotEmpty())
      ->type_name("OUT");
  const auto add = [&](const char* name, std::string& to, const char* help, const char* type) {
    return command.add_option(name, to, help)->check(NotEmpty())->type_name(type)->group("What is read");
  };
  add("--from", a.from, "What SRC is: auto, folder, csv, jsonl, tar, zip, tfrecord or dataset", "KIND")
      ->capture_default_str();
  add("--path-column", a.path_column, "Of CSV and JSON lines: the path of the picture", "NAME")->capture_default_str();
  add("--label-column", a.label_column, "Of CSV and JSON lines: the label", "NAME")->capture_default_str();
  add("--image-feature", a.image_feature, "Of TFRecord files: the picture", "NAME")->capture_default_str();
  add("--label-feature", a.label_feature, "Of TFRecord files: the label", "NAME")->capture_default_str();
  for (const auto& [name, to, help] :
       {std::tuple{"--include", &a.include, "Takes inputs whose key matches; * matches / too. May be repeated"},
        std::tuple{"--exclude", &a.exclude, "Leaves out inputs whose key matches. May be repeated"}}) {
    command.add_option(name, *to, help)
        ->check(NotEmpty())
        ->type_name("GLOB")
        ->group("What is read")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }
  command.add_option("--limit", a.limit, "The first N inputs in the order")
      ->check(WholeNumber(1))
      ->type_name("N")
      ->group("What is read");
  add("--split", a.split, "Several datasets, OUT/NAME each, by a hash of the key", "NAME=0.9,NAME=0.1");
  add("--order", a.order, "name, source (as listed) or shuffled[:SEED]; else name for folders, source for others",
      "ORDER");
  add("--classes", a.classes,
      "Class numbers as in a file (one name a line) or another dataset; else byte order of names", "FILE|DATASET");
}

void DeclareStorage(CLI::App& command, ConvertArguments& a) {
  constexpr char kGroup[] = "What is written";
  const auto add = [&](const char* name, std::string& to, const char* help, const char* type) {
    return command.add_option(name, to, help)->check(NotEmpty())->type_name(type)->group(kGroup);
  };
  add("--format", a.format, "What shards are: record", "FORMAT")->capture_default_str();
  command.add_option("--hdf5-layout", a.hdf5_layout)->group("");
  add("--images", a.images,
      "keep: bytes as they are. lossless: the same pixels, cheaper to decode. jpeg: encoded again. pixels: decoded",
      "HOW")
      ->capture_default_str();
  command.add_option("--quality", a.quality, "Of --images jpeg")
      ->capture_default_str()
      ->check(WholeNumber(1, 100))
      ->type_name("1-100")
      ->group(kGroup);
  add("--chroma", a.chroma, "Of --images jpeg: keep, 444, 422 or 420", "HOW")
      ->capture_default_str()
      ->check(OneOf({"keep", "444", "422", "420"}));
  add("--resize", a.resize, "Shrinks pictures to this short side, or to this width and height; with jpeg and pixels",
      "SHORT|WxH");
  add("--compression", a.compression,
      "auto: what gains on a sample. zstd: tried on each record. archive: tiny records share blocks, smallest",
      "auto|none|zstd[:LEVEL]|archive")
      ->capture_default_str();
  add("--dictionary", a.dictionary, "Of zstd, for tiny records", "auto|none|SIZE")->capture_default_str();
  add("--statistics", a.statistics, "Mean and deviation of the pixels' channels, over a sample or all pictures",
      "none|sample|all")
      ->capture_default_str()
      ->check(OneOf({"none", "sample", "all"}));
  auto* size = add("--shard-size", a.shard_size, "Bytes of input a shard", "SIZE")->capture_default_str();
  command.add_option("--shard-records", a.shard_records, "Records a shard, instead of --shard-size")
      ->check(WholeNumber(1))
      ->type_name("N")
      ->group(kGroup)
      ->excludes(size);
  add("--name", a.name, "A name to keep in the dataset", "NAME");
}

void DeclareBadInputs(CLI::App& command, ConvertArguments& a) {
  constexpr char kGroup[] = "Bad inputs";
  command.add_option("--on-error", a.on_error, "A bad input is left out and listed (skip), or ends the run (fail)")
      ->capture_default_str()
      ->check(OneOf({"skip", "fail"}))
      ->type_name("skip|fail")
      ->group(kGroup);
  command.add_option("--max-bad", a.max_bad, "Most bad inputs that are left out: a number, or a share of all")
      ->check(NotEmpty())
      ->type_name("N|P%")
      ->group(kGroup);
  command
      .add_option("--verify-images", a.verify_images,
                  "How each image is checked: decode it, read its header and look for its end, or only read what the "
                  "index needs")
      ->capture_default_str()
      ->check(OneOf({"decode", "header", "none"}))
      ->type_name("decode|header|none")
      ->group(kGroup);
  command.add_option("--max-pixels", a.max_pixels, "Pictures of more pixels are bad inputs")
      ->capture_default_str()
      ->check(WholeNumber(1))
      ->type_name("N")
      ->group(kGroup);
}

void DeclareRunning(CLI::App& command, ConvertArguments& a) {
  constexpr char kGroup[] = "How it runs";
  command
      .add_option("--part", a.part,
                  "The share of the shards that this process does, counted from 0; auto takes JOB_COMPLETION_INDEX. "
                  "Else as srun or mpirun say")
      ->type_name("I/N|auto/N|none")
      ->group(kGroup);
  command.add_option("--threads", a.threads, "Threads; else all that this process may use")
      ->check(WholeNumber(1, 4096))
      ->type_name("N")
      ->group(kGroup);
  command.add_option("--memory", a.memory, "Most memory for images at work")
      ->capture_default_str()
      ->type_name("SIZE")
      ->group(kGroup);
  command
      .add_flag("--overwrite", a.overwrite,
                "Replace another dataset in OUT, which stays whole until the new one is complete")
      ->group(kGroup);
  command.add_flag("--rescan", a.rescan, "Trust no plan of an earlier run: look at all inputs again")->group(kGroup);
  command.add_flag("--dry-run", a.dry_run, "Say what would be written, and write nothing")->group(kGroup);
  AddProgressOption(command, a.progress);
  command.get_option("--progress")->group(kGroup);
  command.add_flag("--json", a.json, "The result as one line of JSON at the end of standard output")->group(kGroup);
}

PackOptions ReadOptions(const ConvertArguments& a) {
  PackOptions options;
  options.sources.assign(a.sources.begin(), a.sources.end());
  options.output = a.output;
  options.from = ParseFrom(a.from);
  options.path_column = a.path_column;
  options.label_column = a.label_column;
  options.image_feature = a.image_feature;
  options.label_feature = a.label_feature;
  options.include = a.include;
  options.exclude = a.exclude;
  if (a.limit > 0) options.limit = a.limit;
  if (!a.order.empty()) ParseOrder(a.order, options);
  return options;
}

void WriteOptions(const CLI::App& command, const ConvertArguments& a, PackOptions& options) {
  ParseFormat(a.format, a.hdf5_layout);
  options.images = ParseImages(a.images);
  options.quality = a.quality;
  options.chroma = a.chroma == "444"   ? Chroma::k444
                   : a.chroma == "422" ? Chroma::k422
                   : a.chroma == "420" ? Chroma::k420
                                       : Chroma::kKeep;
  for (const char* name : {"--quality", "--chroma"}) {
    if (command.count(name) > 0 && options.images != ImageMode::kJpeg) {
      throw UsageError{std::string(name) + " belongs to --images jpeg"};
    }
  }
  if (!a.resize.empty()) {
    options.resize = ParseResize(a.resize);
    if (options.images != ImageMode::kJpeg && options.images != ImageMode::kPixels) {
      throw UsageError{"--resize " + Escaped(a.resize) + ": re-encodes pictures, so say --images jpeg or pixels"};
    }
  }
  ParseCompression(a.compression, options);
  ParseDictionary(a.dictionary, options);
  options.statistics = a.statistics == "all"      ? Statistics::kAll
                       : a.statistics == "sample" ? Statistics::kSample
                                                  : Statistics::kNone;
  options.shard_bytes = ParseBytes("--shard-size", a.shard_size);
  if (a.shard_records > 0) options.shard_records = a.shard_records;
  options.name = a.name;
}

}  // namespace

ProgressStyle ParseProgressStyle(const std::string& text) {
  if (text == "plain") return ProgressStyle::kPlain;
  return text == "none" ? ProgressStyle::kNone : ProgressStyle::kAuto;
}

void DeclareConvertOptions(CLI::App& command, ConvertArguments& a, ConvertUse use) {
  command.footer(use == ConvertUse::kConvert ? kConvertFooter : kPlanFooter);
  DeclareSources(command, a);
  DeclareStorage(command, a);
  DeclareBadInputs(command, a);
  DeclareRunning(command, a);
}

std::vector<PackOptions> ToPackOptions(const CLI::App& command, const ConvertArguments& a) {
  PackOptions options = ReadOptions(a);
  WriteOptions(command, a, options);
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
  options.rescan = a.rescan;
  options.dry_run = a.dry_run;
  options.part = command.count("--part") > 0 ? ParsePart(a.part) : PartOfEnvironment();
  for (const fs::path& source : options.sources) {
    std::error_code error;
    if (!fs::exists(source, error) && !error) throw UsageError{"there is no " + Escaped(source.native())};
  }
  std::vector<PackOptions> all;
  if (a.split.empty()) return {options};
  for (KeyShare& share : ParseSplit(a.split)) {
    all.push_back(options);
    all.back().output = fs::path(a.output) / share.name;
    all.back().share = std::move(share);
  }
  return all;
}

}  // namespace shardpack::tools

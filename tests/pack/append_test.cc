#include <catch2/catch.hpp>

#include "libshard/pack/given_options.h"
#include "libshard/pack/plan_file.h"
#include "shardpack/error.h"
#include "shardpack/pack.h"
#include "tests/support/picture_shards.h"

using namespace shardpack;
using namespace shardpack::test;
using Catch::Matchers::Contains;

namespace {

namespace fs = std::filesystem;

// Options that differ from the usual in all that concerns what is written.
PackOptions Unusual() {
  PackOptions options;
  options.images = ImageMode::kJpeg;
  options.quality = 71;
  options.chroma = Chroma::k422;
  options.resize = ResizeTo{0, 320, 200};
  options.compression = Compression::kZstd;
  options.zstd_level = -3;
  options.dictionary_bytes = 4096;
  options.statistics = Statistics::kSample;
  options.verify_images = VerifyImages::kHeader;
  options.limits.max_pixels = 12'345;
  options.shard_records = 99;
  return options;
}

// Ten records of plain pictures, packed with `options`.
fs::path Packed(const TempFolder& folder, PackOptions options) {
  const ShardBuilder shard = PictureShard("a", 1);
  for (const TestRecord& record : shard.records()) {
    if (record.encoding != Encoding::kPng) continue;
    const fs::path file = folder / ("tree/" + record.key);
    fs::create_directories(file.parent_path());
    WriteFile(file, record.raw);
  }
  options.sources = {folder / "tree"};
  options.output = folder / "out";
  options.threads = 2;
  Convert(options);
  return options.output;
}

PackOptions More(const TempFolder& folder, const std::string& key) {
  const fs::path file = folder / ("more/" + key);
  fs::create_directories(file.parent_path());
  WriteFile(file, PictureShard("b", 1).records()[0].raw);
  PackOptions options;
  options.sources = {folder / "more"};
  options.output = folder / "out";
  options.threads = 2;
  return options;
}

}  // namespace

TEST_CASE("options are read back from what a plan and a manifest write of them", "[append]") {
  PackOptions short_side = Unusual();
  short_side.resize = ResizeTo{256, 0, 0};
  PackOptions archive;
  archive.compression = Compression::kArchive;
  archive.images = ImageMode::kLossless;
  archive.statistics = Statistics::kAll;
  archive.shard_bytes = 1 << 20;
  for (const PackOptions& options : {PackOptions{}, Unusual(), short_side, archive}) {
    const auto written = ContentOptions(options);
    PackOptions read = Unusual();  // what the caller had does not matter
    TakeContentOptions(written, read);
    CHECK(ContentOptions(read) == written);
  }
}

TEST_CASE("how sources are read stays the caller's", "[append]") {
  PackOptions read;
  read.from = SourceKind::kCsv;
  read.order = RecordOrder::kShuffled;
  read.limit = 7;
  TakeContentOptions(ContentOptions({}), read);
  CHECK(read.from == SourceKind::kCsv);
  CHECK(read.order == RecordOrder::kShuffled);
  CHECK(read.limit == 7u);
}

TEST_CASE("an option that a later version wrote is refused with its name", "[append]") {
  for (const auto& [name, value] : {std::pair{"images", "wavelets"},
                                    {"resize", "320by200"},
                                    {"quality", "high"},
                                    {"shard-size", "1e9"},
                                    {"compression", "brotli"}}) {
    auto written = ContentOptions(Unusual());
    written[name] = value;
    PackOptions read;
    CHECK_THROWS_WITH(TakeContentOptions(written, read), Contains(name) && Contains(value));
  }
}

TEST_CASE("what is appended is made as the dataset was, whatever the caller says", "[append]") {
  const TempFolder folder;
  PackOptions options;
  options.images = ImageMode::kLossless;
  const fs::path out = Packed(folder, options);
  const Manifest before = Manifest::Load(out);
  PackOptions more = More(folder, "a/new.png");
  more.images = ImageMode::kPixels;
  more.name = "another";
  const PackResult result = Append(more, false);
  CHECK(result.manifest.options == before.options);
  CHECK(result.manifest.name.empty());
  CHECK(result.manifest.encodings == std::map<std::string, std::uint64_t>{{"pixels", before.records + 1}});
  REQUIRE(result.manifest.revisions.size() == 1);
  CHECK(result.manifest.revisions[0].command == "append");
  CHECK(result.manifest.revisions[0].records == 1);
  CHECK(Append(more, false).already_complete);
}

TEST_CASE("keys are looked for in datasets of few shards and of many", "[append]") {
  for (const std::uint64_t records : {1u, 100u}) {
    const TempFolder folder;
    PackOptions options;
    options.shard_records = records;
    const fs::path out = Packed(folder, options);
    const Manifest before = Manifest::Load(out);
    CHECK(before.shards.size() == (records == 1 ? before.records : 1));
    const PackOptions more = More(folder, "a/5.png");  // a key of PictureShard()
    try {
      Append(more, false);
      FAIL("no error");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kInvalidArgument);
      CHECK_THAT(error.what(), Contains("a/5.png"));
    }
    CHECK(Manifest::Load(out).ToJson() == before.ToJson());
  }
}

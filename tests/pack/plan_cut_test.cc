// Where shards and batches are cut, and what a request is told by.
#include <catch2/catch.hpp>

#include "libshard/pack/request.h"
#include "tests/pack/made_source.h"

using namespace shardpack;
using namespace shardpack::testing;
using Catch::Matchers::Contains;

namespace {

std::vector<MadeInput> OfSizes(const std::vector<std::uint64_t>& sizes) {
  std::vector<MadeInput> inputs(sizes.size());
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    inputs[i].key = std::to_string(1000 + i);
    inputs[i].size = sizes[i];
  }
  return inputs;
}

std::vector<std::uint64_t> Cut(const std::vector<std::uint64_t>& sizes, std::uint64_t shard_bytes,
                               std::optional<std::uint64_t> shard_records = std::nullopt) {
  PlanBench bench;
  bench.options.shard_bytes = shard_bytes;
  bench.options.shard_records = shard_records;
  bench.Add("tree", OfSizes(sizes));
  bench.Write();
  const Plan plan = Plan::Open(bench.File());
  std::vector<std::uint64_t> counts;
  for (std::uint64_t s = 0; s < plan.num_shards(); ++s) counts.push_back(plan.Shard(s).inputs.size());
  return counts;
}

using Counts = std::vector<std::uint64_t>;

}  // namespace

TEST_CASE("a shard of a plan closes before its inputs pass the size", "[plan]") {
  CHECK(Cut({40, 40, 20, 1, 99, 1}, 100) == Counts{3, 2, 1});
  CHECK(Cut({0, 0, 100, 0, 1}, 100) == Counts{4, 1});
}

TEST_CASE("an input larger than a shard has one of the plan to itself", "[plan]") {
  CHECK(Cut({10, 500, 10}, 100) == Counts{1, 1, 1});
  CHECK(Cut({500, 500}, 100) == Counts{1, 1});
}

TEST_CASE("a shard of a plan closes after the number of records asked for", "[plan]") {
  CHECK(Cut({1, 1, 1, 1, 1}, 100, 2) == Counts{2, 2, 1});
  CHECK(Cut({1000, 1000, 1000}, 100, 3) == Counts{3});
}

TEST_CASE("batches are at most 64 inputs and 1 MiB, a larger input alone", "[plan]") {
  const auto cut = [](const std::vector<std::uint64_t>& sizes) {
    std::vector<PlannedInput> inputs(sizes.size());
    for (std::size_t i = 0; i < sizes.size(); ++i) inputs[i].size = sizes[i];
    Counts counts;
    std::uint64_t next = 0;
    for (const InputRange& batch : CutIntoBatches(inputs)) {
      CHECK(batch.begin == next);
      next = batch.end;
      counts.push_back(batch.size());
    }
    CHECK(next == sizes.size());
    return counts;
  };
  CHECK(cut({}).empty());
  CHECK(cut(std::vector<std::uint64_t>(130, 1)) == Counts{64, 64, 2});
  CHECK(cut({1 << 19, 1 << 19, 1, 5 << 20, 1, 1}) == Counts{2, 1, 1, 2});
  CHECK(cut({~0ull, ~0ull, 1}) == Counts{1, 1, 1});
}

TEST_CASE("the request's digest knows content and nothing else", "[plan]") {
  const auto digest = [](const std::string& place, const auto& change) {
    PlanBench bench;
    std::vector<MadeInput> inputs = OfKeys({"c/1", "d/2"});
    inputs[0].label_text = "c";
    inputs[1].label_text = "d";
    inputs[1].metadata = "{}";
    change(bench.options, inputs);
    bench.Add(place, inputs);
    return bench.Write().request_digest;
  };
  const auto same = [](PackOptions&, std::vector<MadeInput>&) {};
  const Digest128 plain = digest("tree", same);
  using Inputs = std::vector<MadeInput>;

  SECTION("not the place, threads, memory, tolerance") {
    CHECK(digest("elsewhere/named", same) == plain);
    CHECK(digest("tree", [](PackOptions& options, Inputs& inputs) {
            options.threads = 1;
            options.memory_bytes = 1 << 20;
            options.max_bad = 3;
            options.on_error = OnError::kFail;
            options.overwrite = true;
            inputs[0].locator = "elsewhere";
          }) == plain);
  }
  SECTION("inputs") {
    CHECK(digest("tree", [](PackOptions&, Inputs& inputs) { inputs[0].size = 11; }) != plain);
    CHECK(digest("tree", [](PackOptions&, Inputs& inputs) { inputs[0].key = "c/2"; }) != plain);
    CHECK(digest("tree", [](PackOptions&, Inputs& inputs) { inputs[0].label_text = "d"; }) != plain);
    CHECK(digest("tree", [](PackOptions&, Inputs& inputs) { inputs[1].label_text = "e"; }) != plain);
    CHECK(digest("tree", [](PackOptions&, Inputs& inputs) { inputs[0].metadata = "{}"; }) != plain);
    CHECK(digest("tree", [](PackOptions&, Inputs& inputs) { inputs[0].bad = "gone"; }) != plain);
    CHECK(digest("tree", [](PackOptions&, Inputs& inputs) { inputs.pop_back(); }) != plain);
  }
  SECTION("options") {
    const std::vector<std::function<void(PackOptions&)>> changes = {
        [](PackOptions& o) { o.name = "n"; },
        [](PackOptions& o) { o.from = SourceKind::kFolder; },
        [](PackOptions& o) { o.images = ImageMode::kLossless; },
        [](PackOptions& o) { o.images = ImageMode::kJpeg; },
        [](PackOptions& o) { o.images = ImageMode::kJpeg, o.quality = 80; },
        [](PackOptions& o) { o.images = ImageMode::kJpeg, o.chroma = Chroma::k444; },
        [](PackOptions& o) { o.images = ImageMode::kPixels; },
        [](PackOptions& o) {
          o.images = ImageMode::kPixels, o.resize = ResizeTo{256, 0, 0};
        },
        [](PackOptions& o) {
          o.images = ImageMode::kPixels, o.resize = ResizeTo{0, 256, 256};
        },
        [](PackOptions& o) { o.compression = Compression::kAuto; },
        [](PackOptions& o) { o.compression = Compression::kZstd; },
        [](PackOptions& o) { o.compression = Compression::kArchive; },
        [](PackOptions& o) { o.zstd_level = 7; },
        [](PackOptions& o) { o.dictionary_bytes = 0; },
        [](PackOptions& o) { o.order = RecordOrder::kShuffled; },
        [](PackOptions& o) { o.order = RecordOrder::kShuffled, o.order_seed = 1; },
        [](PackOptions& o) { o.include = {"*"}; },
        [](PackOptions& o) {
          o.include = {"*", "c"};
        },
        [](PackOptions& o) {
          o.include = {"*, c", "*"};
        },
        [](PackOptions& o) { o.exclude = {"z"}; },
        [](PackOptions& o) {
          o.share = KeyShare{"all", 0, 1};
        },
        [](PackOptions& o) { o.limit = 2; },
        [](PackOptions& o) { o.shard_bytes = 5; },
        [](PackOptions& o) { o.shard_records = 5; },
        [](PackOptions& o) { o.verify_images = VerifyImages::kHeader; },
        [](PackOptions& o) { o.limits.max_pixels = 5; },
        [](PackOptions& o) { o.statistics = Statistics::kSample; },
        [](PackOptions& o) { o.statistics = Statistics::kAll; },
        [](PackOptions& o) {
          o.classes = std::vector<std::string>{"c", "d"};
        },
        [](PackOptions& o) { o.path_column = "file"; },
        [](PackOptions& o) { o.label_column = "file"; },
        [](PackOptions& o) { o.image_feature = "file"; },
        [](PackOptions& o) { o.label_feature = "file"; },
    };
    std::vector<Digest128> seen = {plain};
    for (const auto& change : changes) {
      const Digest128 here = digest("tree", [&](PackOptions& options, Inputs&) { change(options); });
      CHECK(std::find(seen.begin(), seen.end(), here) == seen.end());
      seen.push_back(here);
    }
  }
}

TEST_CASE("options that cannot be honoured are refused before anything is read", "[plan]") {
  const auto why_not = [](const auto& change) -> std::string {
    PackOptions options;
    options.sources = {"nowhere"};
    options.images = ImageMode::kPixels;
    change(options);
    try {
      CheckPackOptions(options);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kInvalidArgument);
      return error.what();
    }
    return "";
  };
  const auto resize = [&](ResizeTo to) { return why_not([&](PackOptions& o) { o.resize = to; }); };
  const std::string sizes = "pictures are resized to a short side, or to a width and a height, above 0";
  CHECK(resize({64, 0, 0}) == "");
  CHECK(resize({0, 64, 32}) == "");
  CHECK(resize({0, 0, 0}) == sizes);
  CHECK(resize({0, 64, 0}) == sizes);
  CHECK(resize({64, 64, 32}) == sizes);
  for (const int level : {0, 23, -1}) {
    CHECK(why_not([&](PackOptions& o) { o.zstd_level = level; }) == "the level of zstd must be 1 to 22");
  }
  CHECK(why_not([](PackOptions& o) { o.zstd_level = 22; }) == "");
  for (const std::uint64_t bytes : {1ull, 255ull, 1ull << 40}) {
    CHECK(why_not([&](PackOptions& o) { o.dictionary_bytes = bytes; }) == "a zstd dictionary has 256 bytes to 128 MiB");
  }
  CHECK(why_not([](PackOptions& o) { o.dictionary_bytes = 0; }) == "");
  CHECK(why_not([](PackOptions& o) { o.dictionary_bytes = 256; }) == "");
}

TEST_CASE("content options name the libraries whose output they depend on", "[plan]") {
  const auto options = ContentOptions({});
  CHECK(options.at("zstd").find('.') != std::string::npos);
  for (const char* library : {"libjpeg-turbo ", "libpng ", "libwebp ", "GraphicsMagick "}) {
    CHECK_THAT(options.at("image-libraries"), Contains(library));
  }
}

TEST_CASE("marks of sources are absolute, and know when a list or a dataset changed", "[plan]") {
  TemporaryFolder folder;
  fs::create_directories(folder / "tree");
  WriteFile(folder / "list.csv", "path,label\n");
  PackOptions options;
  options.sources = {folder / "tree" / "..", folder / "tree", folder / "list.csv"};
  const auto before = SourceMarks(options);
  CHECK(before[1] == (folder / "tree").native() + "/");
  CHECK_THAT(before[2], Contains((folder / "list.csv").native() + ": 11 bytes"));
  CHECK(before[0] != before[1]);
  WriteFile(folder / "tree" / "1.jpg", "x");
  WriteFile(folder / "list.csv", "path,label\na,1\n");
  const auto after = SourceMarks(options);
  CHECK(after[1] == before[1]);
  CHECK(after[2] != before[2]);
  options.sources = {folder / "none"};
  CHECK_THROWS_WITH(SourceMarks(options), Contains("none"));
}

TEST_CASE("sync markers differ by request and shard", "[plan]") {
  CHECK(SyncMarker({1, 2}, 3) == SyncMarker({1, 2}, 3));
  CHECK(SyncMarker({1, 2}, 3) != SyncMarker({1, 2}, 4));
  CHECK(SyncMarker({1, 2}, 3) != SyncMarker({2, 1}, 3));
}

// A plan as packing makes it: of real sources, with codecs chosen by what pictures become.
#include <algorithm>
#include <catch2/catch.hpp>

#include "libshard/pack/plan_file.h"
#include "tests/pack/made_tree.h"

using namespace shardpack;
using namespace shardpack::testing;

namespace {

PlanHead WriteIn(const TemporaryFolder& folder, PackOptions& options) {
  fs::create_directories(folder / "scratch");
  options.output = folder / "out";
  return WritePlan(options, OpenSources(options), nullptr, folder / "scratch", folder / "plan");
}

// Pictures of smooth colours, which compress.
void MakePictures(const TemporaryFolder& folder) {
  for (int i = 0; i < 40; ++i) {
    WriteFile(folder / "tree" / ("c" + std::to_string(i % 4)) / (std::to_string(i) + ".ppm"),
              Ppm(40 + i, 30, static_cast<char>(i)));
  }
}

const CodecReceipt* ReceiptOf(const PlanHead& head, const std::string& encoding) {
  const auto& receipts = head.codecs.receipts;
  const auto found =
      std::find_if(receipts.begin(), receipts.end(), [&](const auto& receipt) { return receipt.encoding == encoding; });
  return found == receipts.end() ? nullptr : &*found;
}

}  // namespace

TEST_CASE("a tree is planned with its classes, keys and codecs", "[plan]") {
  TemporaryFolder folder;
  MakePictures(folder);
  PackOptions options = Options(folder / "tree", folder / "out");
  const PlanHead head = WriteIn(folder, options);
  CHECK(head.classes == std::vector<std::string>{"c0", "c1", "c2", "c3"});
  CHECK(head.num_inputs == 40);
  const CodecReceipt* receipt = ReceiptOf(head, "pnm");
  REQUIRE(receipt != nullptr);
  CHECK(receipt->sample_records == 40);
  CHECK(receipt->sample_raw_bytes == head.bytes);
  CHECK(receipt->sample_stored_bytes < head.bytes / 4);
  const PlannedShard shard = Plan::Open(folder / "plan").Shard(0);
  CHECK(shard.inputs.at(0).key == "c0/0.ppm");
  CHECK(shard.inputs.at(39).key == "c3/7.ppm");
}

TEST_CASE("the sample is what pictures become", "[plan]") {
  TemporaryFolder folder;
  MakePictures(folder);
  WriteFile(folder / "tree" / "c0" / "broken.png", "not a picture");
  PackOptions options = Options(folder / "tree", folder / "out");
  options.images = ImageMode::kJpeg;
  const PlanHead head = WriteIn(folder, options);
  CHECK(head.num_inputs == 41);
  REQUIRE(ReceiptOf(head, "jpeg") != nullptr);
  CHECK(ReceiptOf(head, "jpeg")->sample_records == 40);
  CHECK(ReceiptOf(head, "pnm") == nullptr);
}

TEST_CASE("threads, memory and places change neither plan nor codecs", "[plan]") {
  const auto plan = [](std::string_view name, int threads, std::uint64_t memory) {
    TemporaryFolder folder;
    MakePictures(folder);
    fs::rename(folder / "tree", folder / name);
    PackOptions options = Options(folder / name, folder / "out");
    options.threads = threads;
    options.memory_bytes = memory;
    options.dictionary_bytes = 2048;
    return WriteIn(folder, options);
  };
  const PlanHead one = plan("tree", 1, 1 << 30), other = plan("named otherwise", 3, 1 << 20);
  CHECK(one.request_digest == other.request_digest);
  CHECK(one.codecs == other.codecs);
}

#include <catch2/catch.hpp>

#include "shardpack/dataset.h"
#include "shardpack/error.h"
#include "tests/support/shard_builder.h"

using namespace shardpack;
using namespace shardpack::test;
using Catch::Contains;

namespace {

ShardBuilder Numbered(int first, int count) {
  ShardBuilder shard;
  shard.options.class_names = {"even", "odd"};
  for (int i = first; i < first + count; ++i) {
    shard.Add({std::string("k").append(std::to_string(i)), i % 2, Noise(50, i), Codec::kStored, Encoding::kPng, 8, 8});
  }
  return shard;
}

// Ten records in four shards, one of them empty.
struct Fixture {
  Fixture() {
    manifest = WriteDataset(folder.path(), {Numbered(0, 3), Numbered(3, 0), Numbered(3, 3), Numbered(6, 4)});
  }
  std::filesystem::path shard(int s) const { return folder / manifest.shards[s].file; }

  std::string ReadThrows(std::uint64_t index) const {
    const Dataset dataset = Dataset::Open(folder.path());
    std::vector<std::byte> bytes;
    try {
      dataset.Read(index, bytes);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kCorruption);
      return error.what();
    }
    return "nothing thrown";
  }

  TempFolder folder;
  Manifest manifest;
};

}  // namespace

TEST_CASE("a dataset is its shards' records in order", "[dataset]") {
  const Fixture made;
  const Dataset dataset = Dataset::Open(made.folder.path());
  REQUIRE(dataset.size() == 10);
  CHECK(dataset.num_shards() == 4);
  CHECK(dataset.digest() == made.manifest.dataset_digest);
  std::vector<std::byte> bytes;
  for (std::uint64_t i = 0; i < 10; ++i) {
    dataset.Read(i, bytes);
    CHECK(bytes == Noise(50, i));
    CHECK(dataset.Info(i).label == static_cast<std::int64_t>(i % 2));
    CHECK(dataset.Key(i) == std::string("k").append(std::to_string(i)));
    CHECK(dataset.Find(dataset.Key(i)) == i);
    CHECK(dataset.IndexOf(dataset.PlaceOf(i)) == i);
  }
  CHECK(dataset.PlaceOf(3).shard == 2);
  CHECK(dataset.PlaceOf(3).record == 0);
  CHECK_FALSE(dataset.Find("k10"));
}

TEST_CASE("classmates are found over all shards", "[dataset]") {
  const Fixture made;
  const Dataset dataset = Dataset::Open(made.folder.path());
  CHECK(dataset.NumClassmates(1) == 5);
  for (std::uint64_t k = 0; k < 5; ++k) CHECK(dataset.Classmate(1, k) == 2 * k + 1);
  CHECK(dataset.NumClassmates(2) == 0);
}

TEST_CASE("a dataset opens by its folder, its manifest or one shard", "[dataset]") {
  const Fixture made;
  CHECK(Dataset::Open(made.folder / "dataset.json").size() == 10);
  const Dataset one = Dataset::Open(made.shard(2));
  CHECK(one.size() == 3);
  CHECK(one.manifest().classes == std::vector<std::string>{"even", "odd"});
  CHECK(one.manifest().encodings.at("png") == 3);
  CHECK(one.Key(0) == "k3");
}

TEST_CASE("a shard alone has the dataset digest of a dataset of it alone", "[dataset]") {
  const TempFolder folder;
  const Manifest manifest = WriteDataset(folder.path(), {EverySection()});
  CHECK(Dataset::Open(folder / manifest.shards[0].file).digest() == manifest.dataset_digest);
}

TEST_CASE("the dataset digest depends on no cut into shards", "[dataset]") {
  const Fixture made;
  const TempFolder folder;
  CHECK(WriteDataset(folder.path(), {Numbered(0, 10)}).dataset_digest == made.manifest.dataset_digest);
  const TempFolder other;
  CHECK(WriteDataset(other.path(), {Numbered(1, 10)}).dataset_digest != made.manifest.dataset_digest);
}

TEST_CASE("a missing path is not found", "[dataset]") {
  for (const char* path : {"/nonexistent", "/nonexistent/dataset.json"}) {
    try {
      Dataset::Open(path);
      FAIL("opened");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kNotFound);
    }
  }
}

TEST_CASE("a missing shard is named when it is needed", "[dataset]") {
  const Fixture made;
  std::filesystem::remove(made.shard(2));
  CHECK_THAT(made.ReadThrows(4), Contains("shard-2.shard") && Contains("missing"));
  std::vector<std::byte> bytes;
  Dataset::Open(made.folder.path()).Read(0, bytes);
  CHECK(bytes == Noise(50, 0));
}

TEST_CASE("a cut shard is told from its size", "[dataset]") {
  const Fixture made;
  const std::uint64_t size = made.manifest.shards[0].bytes;
  std::filesystem::resize_file(made.shard(0), size - 1);
  CHECK_THAT(made.ReadThrows(0),
             Contains("shard-0.shard") &&
                 Contains("is " + std::to_string(size - 1) + " bytes, the manifest says " + std::to_string(size)));
}

TEST_CASE("shards of one size that changed places are refused", "[dataset]") {
  const Fixture made;
  REQUIRE(std::filesystem::file_size(made.shard(0)) == std::filesystem::file_size(made.shard(2)));
  std::filesystem::rename(made.shard(0), made.folder / "aside");
  std::filesystem::rename(made.shard(2), made.shard(0));
  std::filesystem::rename(made.folder / "aside", made.shard(2));
  CHECK_THAT(made.ReadThrows(0), Contains("shard-0.shard") && Contains("not the shard the manifest describes"));
  CHECK_THAT(made.ReadThrows(3), Contains("shard-2.shard") && Contains("not the shard the manifest describes"));
}

TEST_CASE("a folder in a shard's place is refused", "[dataset]") {
  const Fixture made;
  std::filesystem::remove(made.shard(0));
  std::filesystem::create_directory(made.shard(0));
  CHECK_THAT(made.ReadThrows(0), Contains("not a regular file"));
}

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "shardpack/dataset.h"
#include "shardpack/error.h"
#include "shardpack/pack.h"
#include "tests/support/picture_shards.h"

using namespace shardpack;
using namespace shardpack::test;
using Catch::Matchers::Contains;

namespace {

namespace fs = std::filesystem;
using Buffer = std::vector<std::byte>;

std::map<std::string, Buffer> FilesOf(const fs::path& folder) {
  std::map<std::string, Buffer> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    files[entry.path().filename().native()] = entry.is_regular_file() ? ReadFile(entry.path()) : ToBytes("no file");
  }
  return files;
}

// Two shards of eleven records each, under the names that packing gives, with a manifest that tells all of them.
struct Packed {
  TempFolder folder;
  std::vector<ShardBuilder> shards = {PictureShard("a", 1), PictureShard("b", 2)};
  Manifest manifest;

  Packed() {
    manifest = WriteDataset(folder.path(), shards);
    manifest.codecs.clear();
    for (std::size_t s = 0; s < 2; ++s) {
      ShardEntry& entry = manifest.shards[s];
      const std::string name = "shard-0000" + std::to_string(s) + "-" + entry.digest.Hex().substr(0, 8) + ".shard";
      fs::rename(folder / entry.file, folder / name);
      entry.file = name;
      const ShardReader reader = ShardReader::Open(folder / name);
      for (std::uint64_t i = 0; i < reader.num_records(); ++i) {
        CodecCount& codec = manifest.codecs[std::string(Name(reader.Info(i).codec))];
        ++codec.records;
        codec.raw_bytes += reader.Info(i).raw_bytes;
        codec.stored_bytes += reader.Info(i).stored_bytes;
      }
    }
    manifest.options["compression"] = "zstd";
    manifest.Commit(folder.path());
  }

  AmendResult Drop(const std::string& ledger) {
    const TempFolder beside;
    WriteFile(beside / "ledger.jsonl", ToBytes(ledger));
    AmendOptions options;
    options.dataset = folder.path();
    options.ledger = beside / "ledger.jsonl";
    return Amend(options);
  }
  ErrorCode CodeOf(const std::string& ledger, std::string& message) {
    try {
      Drop(ledger);
    } catch (const Error& error) {
      message = error.what();
      return error.code();
    }
    FAIL("no error");
    return ErrorCode::kIo;
  }

  // What must be there: the builders' records but for `dropped`, in their order.
  void CheckHolds(const std::set<std::string>& dropped) {
    const Dataset dataset = Dataset::Open(folder.path());
    DatasetDigester digester;
    std::uint64_t i = 0, bytes_in = 0;
    Histogram widths;
    std::map<std::string, std::uint64_t> encodings;
    for (const ShardBuilder& shard : shards) {
      for (const TestRecord& record : shard.records()) {
        if (dropped.contains(record.key)) {
          CHECK_FALSE(dataset.Find(record.key));
          continue;
        }
        REQUIRE(i < dataset.size());
        INFO(record.key);
        CHECK(dataset.Key(i) == record.key);
        Buffer raw;
        dataset.Read(i, raw);
        CHECK(raw == record.raw);
        const RecordInfo info = dataset.Info(i);
        CHECK(info.label == record.label);
        CHECK(info.width == record.width);
        CHECK(info.codec == record.codec);
        const Dataset::Place place = dataset.PlaceOf(i);
        const ShardReader& reader = dataset.shard(place.shard);
        CHECK(AsText(reader.Metadata(place.record)) == record.metadata);
        CHECK(std::ranges::equal(reader.SideData(place.record), record.side_data));
        digester.Add(record.key, record.label, AsBytes(record.metadata), record.encoding, Xxh3_64(record.raw));
        bytes_in += record.raw.size();
        ++widths[record.width];
        ++encodings[std::string(Name(record.encoding))];
        ++i;
      }
    }
    CHECK(i == dataset.size());
    const Manifest& now = dataset.manifest();
    CHECK(now.records == i);
    CHECK(now.bytes_in == bytes_in);
    CHECK(now.widths == widths);
    CHECK(now.encodings == encodings);
    CHECK(now.classes == manifest.classes);
    CHECK(now.request_digest == manifest.request_digest);
    CHECK(now.dataset_digest == digester.Finish(manifest.classes));
    CHECK(Verify(folder.path(), {}).faults.empty());
    std::set<std::string> files = {"dataset.json"};
    std::uint64_t bytes_out = 0;
    for (const ShardEntry& entry : now.shards) {
      const Buffer bytes = ReadFile(folder / entry.file);
      CHECK(Xxh3_128(bytes) == entry.digest);
      CHECK_THAT(entry.file, Contains(entry.digest.Hex().substr(0, 8)));
      bytes_out += bytes.size();
      files.insert(entry.file);
    }
    CHECK(now.bytes_out == bytes_out);
    std::set<std::string> there;
    for (const auto& [name, bytes] : FilesOf(folder.path())) there.insert(name);
    CHECK(there == files);
  }
};

std::string Lines(const std::set<std::string>& keys) {
  std::string text;
  for (const std::string& key : keys) text += R"({"reason":"blurred","key":")" + key + "\"}\n";
  return text;
}

}  // namespace

TEST_CASE("amending drops what the ledger names and leaves other shards alone", "[amend]") {
  Packed packed;
  const Buffer first = ReadFile(packed.folder / packed.manifest.shards[0].file);
  const std::set<std::string> dropped = {"b/0.png", "b/5.png", "b/9.png"};
  const AmendResult result = packed.Drop(Lines(dropped));
  CHECK(result.dropped == 3);
  CHECK(result.shards_rewritten == 1);
  CHECK(result.shards_removed == 0);
  CHECK(result.not_found == 0);
  CHECK_FALSE(result.already_complete);
  packed.CheckHolds(dropped);
  const Manifest now = Manifest::Load(packed.folder.path());
  CHECK(now.shards[0].file == packed.manifest.shards[0].file);
  CHECK(ReadFile(packed.folder / now.shards[0].file) == first);
  CHECK(now.shards[1].file != packed.manifest.shards[1].file);
  CHECK(now.shards[1].file.starts_with("shard-00001-"));
  REQUIRE(now.revisions.size() == 1);
  CHECK(now.revisions[0].command == "amend");
  CHECK(now.revisions[0].records == 3);
}

TEST_CASE("payloads are copied as they are stored, whole blocks too", "[amend]") {
  Packed packed;
  std::map<std::string, Buffer> stored;
  {
    const Dataset dataset = Dataset::Open(packed.folder.path());
    for (std::uint64_t i = 0; i < 11; ++i) dataset.shard(0).ReadStored(i, stored[std::string(dataset.shard(0).Key(i))]);
  }
  packed.Drop(Lines({"a/4.bmp"}));
  packed.CheckHolds({"a/4.bmp"});
  const Dataset dataset = Dataset::Open(packed.folder.path());
  CHECK(dataset.shard(0).sync_marker() == 1);
  for (std::uint64_t i = 0; i < 10; ++i) {
    const std::string key(dataset.shard(0).Key(i));
    Buffer now;
    dataset.shard(0).ReadStored(i, now);
    const bool in_its_block = key == "a/5.png" || key == "a/6.bmp";
    CHECK((now == stored[key]) == !in_its_block);
  }
}

TEST_CASE("a block, and a shard, that lose all of their records go", "[amend]") {
  Packed packed;
  std::set<std::string> dropped = {"b/7.png", "b/8.bmp"};
  for (const TestRecord& record : packed.shards[0].records()) dropped.insert(record.key);
  const AmendResult result = packed.Drop(Lines(dropped));
  CHECK(result.shards_removed == 1);
  CHECK(result.shards_rewritten == 1);
  packed.CheckHolds(dropped);
  CHECK(Manifest::Load(packed.folder.path()).shards.size() == 1);
}

TEST_CASE("the same ledger again finds that it is done, in whatever order its lines stand", "[amend]") {
  Packed packed;
  packed.Drop(Lines({"a/1.png", "b/2.jpg"}));
  const auto files = FilesOf(packed.folder.path());
  const AmendResult again = packed.Drop("{\"key\":\"b/2.jpg\"}\n\n  \n{\"key\":\"a/1.png\"}\n{\"key\":\"b/2.jpg\"}");
  CHECK(again.already_complete);
  CHECK(again.dropped == 0);
  CHECK(FilesOf(packed.folder.path()) == files);
  packed.Drop(Lines({"a/0.png"}));
  CHECK(Manifest::Load(packed.folder.path()).revisions.size() == 2);
  packed.CheckHolds({"a/0.png", "a/1.png", "b/2.jpg"});
}

TEST_CASE("ledgers of all programs are read", "[amend]") {
  Packed packed;
  const AmendResult result = packed.Drop(
      "{\"key_hex\":\"612f302e706e67\",\"source\":\"x\"}\n"
      "{\"records\":5,\"ok\":false,\"faults\":[{\"shard\":\"s\",\"key\":\"b/3.bmp\",\"kind\":\"checksum\"},"
      "{\"shard\":\"s\",\"key\":null,\"kind\":\"digest\"}]}\n"
      "{\"step\":3,\"key\":\"not/there.png\",\"reason\":\"truncated\"}\r\n");
  CHECK(result.dropped == 2);
  CHECK(result.lines_without_key == 1);
  CHECK(result.not_found == 1);
  CHECK(result.unknown_keys == std::vector<std::string>{"not/there.png"});
  packed.CheckHolds({"a/0.png", "b/3.bmp"});
}

TEST_CASE("a ledger that says nothing clear changes nothing", "[amend]") {
  Packed packed;
  const auto files = FilesOf(packed.folder.path());
  std::string message;
  CHECK(packed.CodeOf("{\"key\":\"a/0.png\"}\n\nnot json\n", message) == ErrorCode::kBadInput);
  CHECK_THAT(message, Contains("line 3"));
  CHECK(packed.CodeOf("{\"key\":7}\n", message) == ErrorCode::kBadInput);
  CHECK(packed.CodeOf("{\"kee\":\"a/0.png\"}\n", message) == ErrorCode::kBadInput);
  CHECK(packed.CodeOf("{\"key_hex\":\"6g\"}\n", message) == ErrorCode::kBadInput);
  CHECK(packed.CodeOf("", message) == ErrorCode::kBadInput);
  CHECK(packed.CodeOf("{\"key\":\"nowhere\"}\n", message) == ErrorCode::kBadInput);
  CHECK_THAT(message, Contains("nowhere"));
  std::set<std::string> all;
  for (const ShardBuilder& shard : packed.shards) {
    for (const TestRecord& record : shard.records()) all.insert(record.key);
  }
  CHECK(packed.CodeOf(Lines(all), message) == ErrorCode::kInvalidArgument);
  CHECK(FilesOf(packed.folder.path()) == files);

  AmendOptions options;
  options.dataset = packed.folder / "no-dataset";
  options.ledger = packed.folder / "no-ledger";
  CHECK_THROWS_AS(Amend(options), Error);
  CHECK_FALSE(fs::exists(packed.folder / "no-dataset"));
}

TEST_CASE("a damaged record can be dropped, and one that is to stay stops it", "[amend]") {
  Packed packed;
  const fs::path shard = packed.folder / packed.manifest.shards[0].file;
  const RecordInfo info = ShardReader::Open(shard).Info(2);
  Buffer bytes = ReadFile(shard);
  bytes[info.offset + 40] ^= std::byte{1};
  WriteFile(shard, bytes);
  const auto files = FilesOf(packed.folder.path());
  std::string message;
  CHECK(packed.CodeOf(Lines({"a/0.png"}), message) == ErrorCode::kCorruption);
  CHECK_THAT(message, Contains("record 2 at byte") && Contains("is to stay"));
  CHECK(FilesOf(packed.folder.path()) == files);
  CHECK(packed.Drop(Lines({"a/0.png", "a/2.jpg"})).dropped == 2);
  packed.CheckHolds({"a/0.png", "a/2.jpg"});
}

TEST_CASE("what a killed run left behind changes no byte of the next", "[amend]") {
  Packed packed, disturbed;
  packed.Drop(Lines({"a/3.bmp"}));
  WriteFile(disturbed.folder / "shard-00000-00000000.shard", ToBytes("of a run that was killed"));
  disturbed.Drop(Lines({"a/3.bmp"}));
  CHECK(FilesOf(disturbed.folder.path()) == FilesOf(packed.folder.path()));
  WriteFile(disturbed.folder / "shard-00000-00000001.shard", ToBytes("of one killed after its commit"));
  CHECK(disturbed.Drop(Lines({"a/3.bmp"})).already_complete);
  CHECK(FilesOf(disturbed.folder.path()) == FilesOf(packed.folder.path()));
}

TEST_CASE("a stop leaves the old dataset whole", "[amend]") {
  Packed packed;
  const auto files = FilesOf(packed.folder.path());
  const std::atomic<bool> stop{true};
  const TempFolder beside;
  WriteFile(beside / "ledger.jsonl", ToBytes(Lines({"a/3.bmp"})));
  AmendOptions options;
  options.dataset = packed.folder.path();
  options.ledger = beside / "ledger.jsonl";
  options.stop = &stop;
  CHECK_THROWS_AS(Amend(options), Interrupted);
  CHECK(FilesOf(packed.folder.path()) == files);
}

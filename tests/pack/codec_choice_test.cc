// How records are compressed, with frames that the zstd program has to understand.
#include "libshard/pack/codec_choice.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <random>

#include "libshard/store/compression.h"
#include "libshard/store/record_block.h"
#include "shardpack/error.h"
#include "tests/support/shard_builder.h"

using namespace shardpack;
using namespace shardpack::test;

namespace {

using Buffer = std::vector<std::byte>;

constexpr std::uint64_t kMany = 1'000'000;

// As 32x32 JPEGs are: a header that all share, and a few hundred bytes that do not compress.
std::vector<SampleRecord> TinyJpegs(std::size_t count) {
  const Buffer header = Noise(625, 12345);
  std::mt19937 random(1);
  std::vector<SampleRecord> records;
  for (std::size_t i = 0; i < count; ++i) {
    Buffer bytes = header;
    const Buffer body = Noise(300 + random() % 200, i);
    bytes.insert(bytes.end(), body.begin(), body.end());
    records.push_back({Encoding::kJpeg, std::move(bytes)});
  }
  return records;
}

// As photographs are.
std::vector<SampleRecord> LargeJpegs(std::size_t count) {
  std::vector<SampleRecord> records;
  for (std::size_t i = 0; i < count; ++i) records.push_back({Encoding::kJpeg, Noise(20000 + 10 * i, 1000 + i)});
  return records;
}

// Of `percent` per cent zeros.
SampleRecord Sparse(Encoding encoding, std::size_t size, std::size_t percent, std::uint64_t seed) {
  Buffer bytes = Noise(size, seed);
  std::fill_n(bytes.begin(), size * percent / 100, std::byte{0});
  return {encoding, std::move(bytes)};
}

std::vector<SampleRecord> operator+(std::vector<SampleRecord> a, const std::vector<SampleRecord>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

CodecPlan Auto(const std::vector<SampleRecord>& sample, std::uint64_t records = kMany, std::uint64_t shards = 1) {
  return ChooseCodecs(sample, records, shards, Compression::kAuto, std::nullopt, std::nullopt);
}

// What the program makes of the frame.
Buffer Unzstd(Bytes frame, Bytes dictionary = {}) {
  const TempFolder folder;
  WriteFile(folder / "frame", frame);
  WriteFile(folder / "words", dictionary);
  const std::string cd = "cd '" + folder.path().string() + "' && ";
  const std::string with = dictionary.empty() ? "" : " -D words";
  REQUIRE(std::system((cd + "zstd -dcq" + with + " < frame > raw").c_str()) == 0);
  return ReadFile(folder / "raw");
}

bool HasProgram() {
  static const bool found = std::system("zstd --version > /dev/null 2>&1") == 0;
  if (!found) WARN("no zstd program: frames are not checked by it");
  return found;
}

}  // namespace

TEST_CASE("tiny JPEGs that share a header get a dictionary, photographs are stored", "[codec]") {
  const CodecPlan plan = Auto(TinyJpegs(200) + LargeJpegs(20));
  REQUIRE(plan.rules.size() >= 2);
  CHECK(plan.rules[0] == CodecPlan::Rule{Encoding::kJpeg, Codec::kZstdDictionary});
  CHECK(plan.rules[1] == CodecPlan::Rule{Encoding::kJpeg, Codec::kStored});
  CHECK(plan.level == 3);
  CHECK(plan.tiny_bytes == 4096);
  CHECK_FALSE(plan.dictionary.empty());
  CHECK(plan.CodecFor(Encoding::kJpeg, 4096) == Codec::kZstdDictionary);
  CHECK(plan.CodecFor(Encoding::kJpeg, 4097) == Codec::kStored);
  REQUIRE(plan.receipts.size() == 2);
  const CodecReceipt& tiny = plan.receipts[0];
  CHECK(tiny.encoding == "jpeg");
  CHECK(tiny.codec == "zstd-dictionary");
  CHECK(tiny.sample_records == 200);
  std::uint64_t raw = 0;
  for (const SampleRecord& record : TinyJpegs(200)) raw += record.bytes.size();
  CHECK(tiny.sample_raw_bytes == raw);
  // The header is found in the dictionary; what is noise stays: 300 to 500 bytes and a few of the frame.
  CHECK(tiny.sample_stored_bytes >= raw - 200 * 625);
  CHECK(tiny.sample_stored_bytes < raw - 200 * 575);
  CHECK(tiny.decode_ns_per_record > 0);
  const CodecReceipt& large = plan.receipts[1];
  CHECK(large.codec == "stored");
  CHECK(large.sample_records == 20);
  CHECK(large.sample_stored_bytes == large.sample_raw_bytes);
  CHECK(large.decode_ns_per_record == 0);
}

TEST_CASE("the zstd program inflates every tiny record with the plan's dictionary", "[codec]") {
  if (!HasProgram()) return;
  const CodecPlan plan = Auto(TinyJpegs(200));
  RecordCompressor compressor(plan);
  Buffer out;
  for (const SampleRecord& record : TinyJpegs(8)) {
    const std::size_t before = out.size();
    REQUIRE(compressor.Compress(record.encoding, record.bytes, out) == Codec::kZstdDictionary);
    CHECK(Unzstd(Bytes(out).subspan(before), plan.dictionary) == record.bytes);
  }
}

TEST_CASE("what is stored is not compressed and leaves the output alone", "[codec]") {
  const CodecPlan plan = Auto(LargeJpegs(20));
  RecordCompressor compressor(plan);
  Buffer out = ToBytes("before");
  // It would gain much: by the sample its encoding is not even tried.
  CHECK(compressor.Compress(Encoding::kJpeg, Buffer(50000), out) == Codec::kStored);
  CHECK(AsText(out) == "before");
}

TEST_CASE("a record that does not gain 5 per cent is stored though its encoding is compressed", "[codec]") {
  std::vector<SampleRecord> sample;
  for (std::uint64_t i = 0; i < 10; ++i) sample.push_back(Sparse(Encoding::kBmp, 30000, 60, i));
  const CodecPlan plan = Auto(sample);
  CHECK(plan.CodecFor(Encoding::kBmp, 30000) == Codec::kZstd);
  RecordCompressor compressor(plan);
  Buffer out;
  CHECK(compressor.Compress(Encoding::kBmp, Sparse(Encoding::kBmp, 30000, 3, 99).bytes, out) == Codec::kStored);
  CHECK(out.empty());
  const Buffer gains = Sparse(Encoding::kBmp, 30000, 9, 99).bytes;
  CHECK(compressor.Compress(Encoding::kBmp, gains, out) == Codec::kZstd);
  if (HasProgram()) CHECK(Unzstd(out) == gains);
}

TEST_CASE("the time to inflate is weighed against the bytes saved", "[codec]") {
  // A byte is worth 5 ns and 1 ns is what inflating it costs: a fifth must be saved.
  const auto codec_of = [](std::size_t percent) {
    std::vector<SampleRecord> sample;
    for (std::uint64_t i = 0; i < 10; ++i) sample.push_back(Sparse(Encoding::kPnm, 100000, percent, i));
    return Auto(sample).CodecFor(Encoding::kPnm, 100000);
  };
  CHECK(codec_of(3) == Codec::kStored);
  CHECK(codec_of(18) == Codec::kStored);
  CHECK(codec_of(24) == Codec::kZstd);
  CHECK(codec_of(90) == Codec::kZstd);
}

TEST_CASE("a dictionary must pay for its two copies in every shard", "[codec]") {
  const std::vector<SampleRecord> sample = TinyJpegs(200);
  const CodecPlan plan = Auto(sample, kMany, 100);
  REQUIRE_FALSE(plan.dictionary.empty());
  // 1,000 records save 600 bytes each, at the most.
  const std::uint64_t shards = 1000 * 625 / (2 * plan.dictionary.size()) + 1;
  const CodecPlan without = Auto(sample, 1000, shards);
  CHECK(without.dictionary.empty());
  CHECK(without.CodecFor(Encoding::kJpeg, 1000) == Codec::kStored);
}

TEST_CASE("the size of the dictionary can be set, and 0 means none", "[codec]") {
  const std::vector<SampleRecord> sample = TinyJpegs(200);
  const auto plan = [&](std::uint64_t bytes) {
    return ChooseCodecs(sample, kMany, 1, Compression::kAuto, std::nullopt, bytes);
  };
  CHECK(plan(0).dictionary.empty());
  CHECK(plan(0).CodecFor(Encoding::kJpeg, 1000) == Codec::kStored);
  const std::size_t size = plan(2048).dictionary.size();
  CHECK(size > 1024);
  CHECK(size <= 2048);
  CHECK_THROWS_AS(plan(255), Error);
}

TEST_CASE("a sample too small to learn from gives no dictionary", "[codec]") {
  const std::size_t count = GENERATE(0, 1, 2, 15);
  CHECK(Auto(TinyJpegs(count)).dictionary.empty());
}

TEST_CASE("an encoding that the sample lacks is stored, but for plain pixels", "[codec]") {
  const CodecPlan plan = Auto(LargeJpegs(3));
  for (const Encoding encoding : {Encoding::kPng, Encoding::kWebp, Encoding::kGif, Encoding::kUnknown})
    CHECK(plan.CodecFor(encoding, 10000) == Codec::kStored);
  for (const Encoding encoding : {Encoding::kBmp, Encoding::kPnm, Encoding::kTiff, Encoding::kPixels})
    CHECK(plan.CodecFor(encoding, 10000) == Codec::kZstd);
}

TEST_CASE("plain pixels larger than those of the sample are tried", "[codec]") {
  std::vector<SampleRecord> sample = TinyJpegs(100);
  for (SampleRecord& record : sample) record.encoding = Encoding::kPixels;
  const CodecPlan plan = Auto(sample);
  CHECK(plan.CodecFor(Encoding::kPixels, 1000) == Codec::kZstdDictionary);
  CHECK(plan.CodecFor(Encoding::kPixels, 10000) == Codec::kZstd);
}

TEST_CASE("tiny and large records of an encoding that need the same codec have one rule and one receipt", "[codec]") {
  std::vector<SampleRecord> sample;
  for (std::uint64_t i = 0; i < 5; ++i) sample.push_back(Sparse(Encoding::kPng, 2000, 0, i));
  for (std::uint64_t i = 0; i < 5; ++i) sample.push_back(Sparse(Encoding::kPng, 200000, 80, i));
  const CodecPlan plan = Auto(sample);
  REQUIRE(plan.receipts.size() == 1);
  CHECK(plan.receipts[0].sample_records == 10);
  CHECK(plan.receipts[0].codec == "zstd");
  CHECK(plan.CodecFor(Encoding::kPng, 100) == Codec::kZstd);
}

TEST_CASE("--compression none stores everything and still has receipts", "[codec]") {
  const CodecPlan plan =
      ChooseCodecs(TinyJpegs(100) + LargeJpegs(5), kMany, 1, Compression::kNone, std::nullopt, std::nullopt);
  CHECK(plan.dictionary.empty());
  for (const Encoding encoding : {Encoding::kJpeg, Encoding::kBmp, Encoding::kPixels})
    CHECK(plan.CodecFor(encoding, 100) == Codec::kStored);
  REQUIRE(plan.receipts.size() == 1);
  CHECK(plan.receipts[0].sample_records == 105);
  CHECK(plan.receipts[0].codec == "stored");
}

TEST_CASE("--compression zstd tries every record, with a dictionary on tiny ones", "[codec]") {
  const CodecPlan plan = ChooseCodecs(TinyJpegs(200) + LargeJpegs(5), kMany, 1, Compression::kZstd, 7, std::nullopt);
  CHECK(plan.level == 7);
  CHECK(plan.CodecFor(Encoding::kJpeg, 1000) == Codec::kZstdDictionary);
  CHECK(plan.CodecFor(Encoding::kJpeg, 5000) == Codec::kZstd);
  CHECK(plan.CodecFor(Encoding::kGif, 5000) == Codec::kZstd);
  RecordCompressor compressor(plan);
  Buffer out;
  CHECK(compressor.Compress(Encoding::kGif, Buffer(5000), out) == Codec::kZstd);
  CHECK(compressor.Compress(Encoding::kJpeg, Noise(5000, 5), out) == Codec::kStored);
}

TEST_CASE("--compression archive puts tiny records in blocks and tries zstd on the others", "[codec]") {
  const std::vector<SampleRecord> tiny = TinyJpegs(200);
  const CodecPlan plan =
      ChooseCodecs(tiny + LargeJpegs(5), kMany, 1, Compression::kArchive, std::nullopt, std::nullopt);
  CHECK(plan.dictionary.empty());
  CHECK(plan.level == 9);
  CHECK(ChooseCodecs(tiny, kMany, 1, Compression::kArchive, 4, std::nullopt).level == 4);
  CHECK(plan.CodecFor(Encoding::kJpeg, 4096) == Codec::kZstdBlock);
  CHECK(plan.CodecFor(Encoding::kJpeg, 4097) == Codec::kZstd);
  CHECK(plan.CodecFor(Encoding::kGif, 4096) == Codec::kZstdBlock);
  CHECK(plan.CodecFor(Encoding::kGif, 4097) == Codec::kZstd);
  RecordCompressor compressor(plan);
  Buffer out;
  CHECK(compressor.Compress(Encoding::kJpeg, tiny[0].bytes, out) == Codec::kZstdBlock);
  CHECK(out.empty());
}

TEST_CASE("the zstd program inflates a block to the bytes of its records", "[codec]") {
  if (!HasProgram()) return;
  const std::vector<SampleRecord> tiny = TinyJpegs(40);
  const CodecPlan plan = ChooseCodecs(tiny, kMany, 1, Compression::kArchive, std::nullopt, std::nullopt);
  RecordCompressor compressor(plan);
  std::vector<RecordToWrite> records(tiny.size());
  Buffer images;
  for (std::size_t i = 0; i < tiny.size(); ++i) {
    records[i].info.raw_bytes = static_cast<std::uint32_t>(tiny[i].bytes.size());
    records[i].key = "key";
    records[i].payload = tiny[i].bytes;
    images.insert(images.end(), tiny[i].bytes.begin(), tiny[i].bytes.end());
  }
  Buffer out = ToBytes("before");
  const std::size_t size = compressor.CompressBlock(records, out);
  REQUIRE(out.size() == 6 + size);
  const Buffer content = Unzstd(Bytes(out).subspan(6));
  REQUIRE(content.size() == 8 + 40 * (20 + 3) + images.size());
  CHECK(std::equal(images.begin(), images.end(), content.end() - static_cast<std::ptrdiff_t>(images.size())));
  CHECK(size < images.size() - 39 * 600);
}

TEST_CASE("a record that no block has room for is compressed alone, where it gains", "[codec]") {
  const CodecPlan plan = ChooseCodecs({}, kMany, 1, Compression::kArchive, std::nullopt, std::nullopt);
  RecordCompressor compressor(plan);
  Buffer out;
  CHECK(compressor.CompressAlone(Noise(1000, 1), out) == Codec::kStored);
  CHECK(out.empty());
  CHECK(compressor.CompressAlone(Buffer(1000), out) == Codec::kZstd);
  if (HasProgram()) CHECK(Unzstd(out) == Buffer(1000));
}

TEST_CASE("equal samples and options give equal plans and equal bytes", "[codec]") {
  const std::vector<SampleRecord> sample = TinyJpegs(300) + LargeJpegs(4);
  const CodecPlan a = Auto(sample), b = Auto(sample);
  CHECK(a == b);
  RecordCompressor one(a), other(b);
  Buffer out_one, out_other, unrelated;
  other.Compress(Encoding::kJpeg, TinyJpegs(2)[1].bytes, unrelated);  // no state is carried from record to record
  one.Compress(Encoding::kJpeg, TinyJpegs(1)[0].bytes, out_one);
  other.Compress(Encoding::kJpeg, TinyJpegs(1)[0].bytes, out_other);
  CHECK_FALSE(out_one.empty());
  CHECK(out_one == out_other);
}

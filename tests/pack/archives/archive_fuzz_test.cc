// Archives that were cut or harmed: every outcome but an Error or a whole reading is a defect, and under the sanitizers
// so is each stray access.
#include <archive.h>
#include <archive_entry.h>
#include <zip.h>
#include <zlib.h>
#include <zstd.h>

#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <vector>

#include "libshard/pack/crc32c.h"
#include "libshard/pack/source.h"
#include "libshard/store/coding.h"
#include "tests/pack/archives/collecting_sink.h"
#include "tests/pack/made_tree.h"

namespace shardpack::testing {
namespace {

constexpr std::uint64_t kReadLimit = 1 << 24;  // a harmed directory may well claim a size of gigabytes

using Opener = std::function<std::unique_ptr<Source>(const fs::path&)>;

// Returns whether all went well; throws nothing but through a defect.
bool ReadThrough(const Opener& open, const fs::path& path) {
  try {
    CollectingSink sink(true);
    const auto source = open(path);
    source->Scan(nullptr, sink);
    bool whole = true;
    for (const CollectedInput& input : sink.inputs) {
      whole = whole && input.bad.empty();
      if (!input.bad.empty() || input.size > kReadLimit) continue;
      std::string bytes(input.size, '\0');
      try {
        source->Read(input.AsPlanned(), reinterpret_cast<std::byte*>(bytes.data()));
      } catch (const Error&) {
        whole = false;
      }
    }
    return whole;
  } catch (const Error& e) {
    CHECK(std::string(e.what()).find(path.filename().native()) != std::string::npos);
    return false;
  }
}

// Under a new inode: some file systems write what took the place of older bytes to the disk at once.
void Replace(const fs::path& path, std::string_view content) {
  fs::remove(path);
  WriteFile(path, content);
}

void Harm(const Opener& open, const std::string& content, std::uint64_t step) {
  TemporaryFolder folder;
  const fs::path path = folder / "harmed.bin";
  Replace(path, content);
  REQUIRE(ReadThrough(open, path));
  for (std::size_t size = 0; size < content.size(); size += step) {
    Replace(path, std::string_view(content).substr(0, size));
    ReadThrough(open, path);
  }
  // A linear congruential generator: the same harm in every run.
  std::uint64_t state = 1;
  const auto draw = [&](std::uint64_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
  };
  for (int round = 0; round < 1500; ++round) {
    std::string harmed = content;
    for (std::uint64_t n = 1 + draw(3); n > 0; --n) {
      char& c = harmed[draw(harmed.size())];
      c = draw(2) == 0 ? static_cast<char>(c ^ (1 << draw(8))) : static_cast<char>(draw(256));
    }
    Replace(path, harmed);
    ReadThrough(open, path);
  }
}

// Pieces of text that no two samples share.
std::string Content(int i) {
  return "picture " + std::string(static_cast<std::size_t>(i * 37 % 90), static_cast<char>('a' + i));
}

la_ssize_t AppendTo(archive*, void* to, const void* data, std::size_t size) {
  static_cast<std::string*>(to)->append(static_cast<const char*>(data), size);
  return static_cast<la_ssize_t>(size);
}

std::string Tar(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string content;
  archive* writer = archive_write_new();
  archive_write_set_format_pax(writer);
  archive_write_set_bytes_per_block(writer, 512);
  archive_write_open(writer, &content, nullptr, AppendTo, nullptr);
  for (const auto& [name, bytes] : members) {
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, name.c_str());
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_size(entry, static_cast<la_int64_t>(bytes.size()));
    archive_write_header(writer, entry);
    archive_write_data(writer, bytes.data(), bytes.size());
    archive_entry_free(entry);
  }
  archive_write_free(writer);
  return content;
}

std::vector<std::pair<std::string, std::string>> Samples() {
  return {{"a/0.jpg", Content(0)},
          {"a/0.cls", "7"},
          {"a/1.json", "{\"label\": [1, 2], \"x\": \"y\"}"},
          {"a/1.png", Content(1)}};
}

std::string Gzip(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(text.size() + 1000, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string Zstd(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

std::string Zip(const std::vector<std::pair<std::string, std::string>>& members) {
  TemporaryFolder folder;
  const fs::path path = folder / "made.zip";
  zip_t* archive = zip_open(path.c_str(), ZIP_CREATE, nullptr);
  for (const auto& [name, bytes] : members) {
    zip_file_add(archive, name.c_str(), zip_source_buffer(archive, bytes.data(), bytes.size(), 0), 0);
  }
  REQUIRE(zip_close(archive) == 0);
  return ReadFile(path);
}

std::string Field(int number, const std::string& bytes) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}

std::string Framed(const std::string& data) {
  std::string head(12, '\0'), tail(4, '\0');
  Store(head.data(), std::uint64_t{data.size()});
  Store(head.data() + 8, MaskedCrc32c(AsBytes(head).first(8)));
  Store(tail.data(), MaskedCrc32c(AsBytes(data)));
  return head + data + tail;
}

std::string Example(int i) {
  const std::string picture =
      Field(1, Field(1, "image/encoded") + Field(2, Field(1, Field(1, Content(i).substr(0, 50)))));
  const std::string label =
      Field(1, Field(1, "image/class/label") + Field(2, Field(3, Field(1, std::string(1, static_cast<char>(i))))));
  const std::string all = picture + label;
  return std::string("\x0a") + static_cast<char>(0x80 | (all.size() & 0x7f)) + static_cast<char>(all.size() >> 7) + all;
}

const Opener kTar = [](const fs::path& path) { return OpenTarSource(path); };
const Opener kZip = [](const fs::path& path) { return OpenZipSource(path); };
const Opener kTfrecord = [](const fs::path& path) { return OpenTfrecordSource(path, PackOptions{}); };

TEST_CASE("a tar that is cut at any byte or harmed anywhere is read or refused", "[archives][fuzz]") {
  const std::string tar = Tar(Samples());
  Harm(kTar, tar, 7);
  Harm(kTar, Gzip(tar), 1);
  Harm(kTar, Zstd(tar), 1);
}

TEST_CASE("a tar of tars that is cut at any byte or harmed anywhere is read or refused", "[archives][fuzz]") {
  const std::string inner = Tar({{"1.jpg", Content(3)}, {"2.jpg", Content(4)}});
  const std::string tar = Tar({{"cat.tar", inner}, {"dog.tar", inner}});
  Harm(kTar, tar, 61);
  Harm(kTar, Gzip(tar), 3);
}

TEST_CASE("a zip that is cut at any byte or harmed anywhere is read or refused", "[archives][fuzz]") {
  Harm(kZip, Zip({{"cat/1.jpg", Content(1)}, {"dog/2.jpg", Content(2)}, {"dog/3.jpg", Content(3)}}), 1);
  Harm(kZip, Zip(Samples()), 1);
}

TEST_CASE("a TFRecord file that is cut at any byte or harmed anywhere is read or refused", "[archives][fuzz]") {
  const std::string content = Framed(Example(1)) + Framed(Example(2)) + Framed(Example(3));
  Harm(kTfrecord, content, 1);
  Harm(kTfrecord, Gzip(content), 1);
}

TEST_CASE("an Example whose bytes are harmed under a right checksum is read, bad or refused", "[archives][fuzz]") {
  TemporaryFolder folder;
  const std::string first = Framed(Example(1)), example = Example(2);
  for (std::size_t at = 0; at < example.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string harmed = example;
      harmed[at] = static_cast<char>(harmed[at] ^ (1 << bit));
      Replace(folder / "harmed.bin", first + Framed(harmed));
      ReadThrough(kTfrecord, folder / "harmed.bin");
      Replace(folder / "harmed.bin", first + Framed(harmed.substr(0, at)));
      ReadThrough(kTfrecord, folder / "harmed.bin");
    }
  }
}

}  // namespace
}  // namespace shardpack::testing

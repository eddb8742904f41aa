// Conversions that are stopped, harmed and gone on with; one conversion by several processes.
#include <sys/file.h>

#include <catch2/catch.hpp>
#include <functional>
#include <thread>

#include "libshard/pack/journal.h"
#include "libshard/pack/part.h"
#include "libshard/pack/published_plan.h"
#include "libshard/pack/tar_writer.h"
#include "libshard/pack/work_folder.h"
#include "shardpack/dataset.h"
#include "shardpack/error.h"
#include "tests/pack/made_tree.h"

using namespace shardpack;
using namespace shardpack::testing;
using Catch::Matchers::Contains;

namespace {

// Forty pictures, a bad one among them, in ten shards.
struct Bench {
  TemporaryFolder folder;
  PackOptions options;
  std::map<std::string, std::string> wanted;  // files of an undisturbed conversion

  Bench() {
    const fs::path tree = folder / "tree";
    for (int i = 0; i < 39; ++i) {
      WriteFile(tree / std::to_string(i % 3) / (std::to_string(100 + i) + ".ppm"), Ppm(8, 5, static_cast<char>(i)));
    }
    WriteFile(tree / "1" / "bad.png", "no picture");
    options = Options(tree, folder / "wanted");
    options.shard_records = 4;
    Convert(options);
    wanted = FilesOf(folder / "wanted");
    options.output = folder / "out";
  }

  fs::path out() const { return folder / "out"; }
  fs::path work() const { return out() / kWorkFolder; }

  // Stops after so many shards were finished.
  void Stop(std::uint64_t shards) {
    std::atomic<bool> stop{false};
    PackOptions stopped = options;
    stopped.threads = 1;
    stopped.stop = &stop;
    if (shards == 0) stopped.progress = [&](const PackProgress& p) { stop = p.stage == "packing"; };
    if (shards > 0) {
      stopped.part = {0, static_cast<std::uint32_t>(10 / shards), ""};
      Convert(stopped);
      return;
    }
    CHECK_THROWS_AS(Convert(stopped), Interrupted);
  }

  std::vector<std::string> Finished() const {
    std::vector<std::string> names;
    for (const auto& [name, content] : FilesOf(work())) {
      if (name.starts_with("finished-")) names.push_back(name);
    }
    return names;
  }
};

}  // namespace

TEST_CASE("a conversion that was stopped while packing goes on to the same bytes", "[resume]") {
  Bench bench;
  bench.Stop(0);
  CHECK(fs::exists(bench.work() / "plan"));
  CHECK(Convert(bench.options).resumed);
  CHECK(FilesOf(bench.out()) == bench.wanted);
}

TEST_CASE("finished shards are not made again", "[resume]") {
  Bench bench;
  bench.Stop(5);
  REQUIRE(bench.Finished().size() >= 4);
  std::map<fs::path, fs::file_time_type> times;
  for (const auto& entry : fs::directory_iterator(bench.out())) {
    if (entry.path().extension() == ".shard") times[entry.path()] = entry.last_write_time();
  }
  REQUIRE(times.size() >= 4);
  CHECK(Convert(bench.options).sealed);
  for (const auto& [path, time] : times) CHECK(fs::last_write_time(path) == time);
  CHECK(FilesOf(bench.out()) == bench.wanted);
}

TEST_CASE("what is lost or harmed of the work is done again", "[resume]") {
  Bench bench;
  bench.Stop(5);
  const std::string first = bench.Finished().at(0);
  const auto shard = [&] {
    for (const auto& [name, content] : FilesOf(bench.out())) {
      if (name.starts_with("shard-00000-")) return bench.out() / name;
    }
    return fs::path();
  };
  SECTION("a journal file") { fs::remove(bench.work() / first); }
  SECTION("the end of a journal file") { fs::resize_file(bench.work() / first, 40); }
  SECTION("a byte of a journal file") {
    std::string text = ReadFile(bench.work() / first);
    text[text.size() / 2] ^= 1;
    WriteFile(bench.work() / first, text);
  }
  SECTION("a shard") { fs::remove(shard()); }
  SECTION("the end of a shard") { fs::resize_file(shard(), 100); }
  SECTION("the plan") { fs::remove(bench.work() / "plan"); }
  SECTION("a byte of the plan") {
    std::string bytes = ReadFile(bench.work() / "plan");
    bytes[bytes.size() - 20] ^= 1;
    WriteFile(bench.work() / "plan", bytes);
  }
  SECTION("a byte of what the plan says of a shard to come") {
    std::string bytes = ReadFile(bench.work() / "plan");
    const auto key = bytes.rfind(".ppm");
    REQUIRE(key != std::string::npos);
    bytes[key] ^= 1;
    WriteFile(bench.work() / "plan", bytes);
  }
  CHECK(Convert(bench.options).sealed);
  CHECK(FilesOf(bench.out()) == bench.wanted);
}

TEST_CASE("a shard whose index was harmed since is found by the seal, and made again by the next run", "[resume]") {
  Bench bench;
  bench.Stop(5);
  fs::path shard;
  for (const auto& [name, content] : FilesOf(bench.out())) {
    if (name.starts_with("shard-00001-")) shard = bench.out() / name;
  }
  std::string bytes = ReadFile(shard);
  bytes[bytes.size() - 4096] ^= 1;  // in the index, which begins on a page
  bytes[bytes.size() - 10] ^= 1;
  WriteFile(shard, bytes);
  CHECK_THROWS_WITH(Convert(bench.options), Contains(shard.filename().native()) && Contains("again"));
  CHECK_FALSE(fs::exists(bench.out() / kManifestName));
  Convert(bench.options);
  CHECK(FilesOf(bench.out()) == bench.wanted);
}

TEST_CASE("killed between the commit and the clean-up, the next run cleans up", "[resume]") {
  Bench bench;
  std::atomic<bool> stop{false};
  bench.options.stop = &stop;
  bench.options.progress = [&](const PackProgress& p) { stop = p.stage == "sealing"; };
  CHECK_THROWS_AS(Convert(bench.options), Interrupted);
  bench.options.stop = nullptr;
  bench.options.progress = nullptr;
  WriteFile(bench.out() / kManifestName, bench.wanted.at(kManifestName));
  WriteFile(bench.out() / kLedgerName, bench.wanted.at(kLedgerName));
  CHECK(Convert(bench.options).already_complete);
  CHECK(FilesOf(bench.out()) == bench.wanted);
}

TEST_CASE("parts in any order give the bytes of one process", "[parts]") {
  Bench bench;
  for (const std::uint32_t count : {1u, 3u, 8u, 16u}) {
    for (const bool backwards : {false, true}) {
      fs::remove_all(bench.out());
      for (std::uint32_t i = 0; i < count; ++i) {
        bench.options.part = {backwards ? count - 1 - i : i, count, "test"};
        const PackResult result = Convert(bench.options);
        if (i + 1 == count) CHECK(result.sealed);
        if (!result.sealed) CHECK_FALSE(fs::exists(bench.out() / kManifestName));
      }
      CHECK(FilesOf(bench.out()) == bench.wanted);
    }
  }
}

TEST_CASE("parts without a shard that come after an overwrite was sealed leave it as it is", "[parts]") {
  Bench bench;
  PackOptions other = bench.options;
  other.shard_records = 7;
  Convert(other);
  bench.options.overwrite = true;
  for (std::uint32_t i = 0; i < 12; ++i) {
    bench.options.part = {i, 12, "test"};
    Convert(bench.options);
  }
  CHECK(FilesOf(bench.out()) == bench.wanted);
}

TEST_CASE("parts that run at once agree on one plan", "[parts]") {
  Bench bench;
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (std::uint32_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      PackOptions options = bench.options;
      options.part = {i, 4, "test"};
      try {
        Convert(options);
      } catch (...) {
        ++failures;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(failures == 0);
  CHECK(FilesOf(bench.out()) == bench.wanted);
}

TEST_CASE("parts are runs of shards that cover the plan and are about as large", "[parts]") {
  Bench bench;
  MakePlan(bench.options);
  const auto plan = OpenPublishedPlan(bench.work());
  REQUIRE(plan);
  for (std::uint32_t count = 1; count < 14; ++count) {
    const auto parts = CutIntoParts(*plan, count);
    std::uint64_t next = 0;
    for (const ShardRange& part : parts) {
      CHECK(part.begin == next);
      next = part.end;
      CHECK(part.end - part.begin <= 10 / count + 2);
    }
    CHECK(next == plan->num_shards());
  }
}

TEST_CASE("a part that another process does is refused, with its host and number", "[parts]") {
  Bench bench;
  bench.Stop(0);
  bench.options.part = {1, 2, "test"};
  const WorkFolder other(bench.out(), WorkFolder::Use::kShared);
  FileLock lock = other.OpenLock("part-1-of-2");
  REQUIRE(lock.Try(FileLock::Mode::kAlone));
  lock.WriteHolder();
  try {
    Convert(bench.options);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kIo);
    CHECK_THAT(error.what(), Contains("part 1 of 2") && Contains("host " + HostName()) &&
                                 Contains("process " + std::to_string(getpid())));
  }
  bench.options.part = {0, 2, "test"};
  CHECK_FALSE(Convert(bench.options).sealed);
}

TEST_CASE("who works by another plan is named, which is never the process itself", "[parts]") {
  Bench bench;
  bench.Stop(0);
  const WorkFolder other(bench.out(), WorkFolder::Use::kShared);
  bench.options.verify_images = VerifyImages::kHeader;
  bench.options.overwrite = true;
  const auto refusal = [&] {
    try {
      Convert(bench.options);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kIo);
      return std::string(error.what());
    }
    return std::string("no error");
  };
  CHECK_THAT(refusal(), Contains("by another plan") && !Contains("process " + std::to_string(getpid())));
  FileLock lock = other.OpenLock("part-3-of-5");
  REQUIRE(lock.Try(FileLock::Mode::kAlone));
  WriteFile(bench.work() / "part-3-of-5", "node7 4711\n");
  CHECK_THAT(refusal(), Contains("by another plan") && Contains("(host node7, process 4711)"));
}

TEST_CASE("unfinished files of the dead are removed, those of the living are not", "[parts]") {
  Bench bench;
  bench.Stop(0);
  const WorkFolder other(bench.out(), WorkFolder::Use::kShared);
  WriteFile(other.PartialPath(7), "at work");
  WriteFile(bench.work() / "shard-00007.node-1-00000000.partial", "left");
  bench.options.part = {0, 2, "test"};
  Convert(bench.options);
  CHECK(fs::exists(other.PartialPath(7)));
  CHECK_FALSE(fs::exists(bench.work() / "shard-00007.node-1-00000000.partial"));
}

TEST_CASE("a seal names the shards and parts that are missing, and needs no source", "[seal]") {
  Bench bench;
  bench.options.part = {0, 3, "test"};
  const PackResult first = Convert(bench.options);
  CHECK_FALSE(first.sealed);
  CHECK(first.missing_parts == std::vector<std::uint32_t>{1, 2});
  SealOptions seal;
  seal.output = bench.out();
  CHECK_THROWS_WITH(Seal(seal),
                    Contains("of 10 shards") && Contains("missing: 4, 5") && Contains("parts to run again: 1, 2 of 3"));
  // The last part is stopped before it seals.
  bench.options.part = {1, 3, "test"};
  Convert(bench.options);
  bench.options.part = {2, 3, "test"};
  std::atomic<bool> stop{false};
  bench.options.stop = &stop;
  bench.options.progress = [&](const PackProgress& p) { stop = p.stage == "sealing"; };
  CHECK_THROWS_AS(Convert(bench.options), Interrupted);
  fs::remove_all(bench.folder / "tree");
  const PackStatus status = Status(bench.out());
  CHECK(status.shards_done == status.shards);
  CHECK_FALSE(status.sealed);
  seal.max_bad = 0;
  CHECK_THROWS_WITH(Seal(seal), Contains("bad.png") && Contains("limit is 0"));
  seal.max_bad.reset();
  CHECK(Seal(seal).sealed);
  CHECK(FilesOf(bench.out()) == bench.wanted);
  CHECK(Seal(seal).already_complete);
}

TEST_CASE("seal and status tell what is wrong with a sealed dataset", "[seal][status]") {
  Bench bench;
  Convert(bench.options);
  std::string wrong;
  SECTION("a shard is gone") {
    for (const auto& [name, content] : bench.wanted) {
      if (name.starts_with("shard-00004-")) wrong = name;
    }
    REQUIRE(fs::remove(bench.out() / wrong));
  }
  SECTION("the manifest is cut") {
    wrong = kManifestName;
    fs::resize_file(bench.out() / kManifestName, 100);
  }
  SealOptions seal;
  seal.output = bench.out();
  for (const auto& ask :
       {std::function<void()>([&] { Seal(seal); }), std::function<void()>([&] { Status(bench.out()); })}) {
    try {
      ask();
      FAIL("no error");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kCorruption);
      CHECK_THAT(error.what(), Contains(wrong));
    }
  }
}

TEST_CASE("more parts than there can be are refused, and no file's name makes room for them", "[parts][status]") {
  Bench bench;
  bench.options.part = {0, 4'294'967'295, "test"};
  CHECK_THROWS_WITH(Convert(bench.options), Contains("4294967295 parts"));
  CHECK_FALSE(fs::exists(bench.out()));
  bench.options.part = {1, 65'536, "test"};
  CHECK_FALSE(Convert(bench.options).sealed);
  WriteFile(bench.work() / "part-0-of-4294967295", "node7 4711\n");
  const PackStatus status = Status(bench.out());
  REQUIRE(status.parts.size() == 1);
  CHECK(status.parts[0].count == 65'536);
}

TEST_CASE("status tells of parts, of what runs and what is missing", "[status]") {
  Bench bench;
  CHECK_THROWS_AS(Status(bench.out()), Error);
  bench.options.part = {2, 5, "test"};
  Convert(bench.options);
  PackStatus status = Status(bench.out());
  CHECK(status.planned);
  CHECK_FALSE(status.sealed);
  CHECK(status.shards == 10);
  CHECK(status.shards_done == 2);
  CHECK(status.inputs_done == 8);
  REQUIRE(status.parts.size() == 1);
  CHECK(status.parts[0].shards_done == 2);
  CHECK_FALSE(status.parts[0].running);
  CHECK(status.missing == std::vector<std::uint64_t>{0, 1, 2, 3, 6, 7, 8, 9});
  const WorkFolder other(bench.out(), WorkFolder::Use::kShared);
  FileLock lock = other.OpenLock("part-0-of-5");
  REQUIRE(lock.Try(FileLock::Mode::kAlone));
  status = Status(bench.out());
  CHECK(status.parts[0].running);
  CHECK(status.missing == std::vector<std::uint64_t>{2, 3, 6, 7, 8, 9});
}

TEST_CASE("an input that changed since the plan is refused with its name, unless all are looked at again", "[resume]") {
  Bench bench;
  bench.Stop(5);
  const fs::path last = bench.folder / "tree" / "2" / "138.ppm";
  const std::string content = ReadFile(last);
  const bool gone = GENERATE(false, true);
  gone ? static_cast<void>(fs::remove(last)) : WriteFile(last, Ppm(50, 50, 'x'));
  CHECK_THROWS_WITH(Convert(bench.options), Contains("2/138.ppm") && Contains("--rescan"));
  SECTION("put back, the run goes on") {
    WriteFile(last, content);
    Convert(bench.options);
    CHECK(FilesOf(bench.out()) == bench.wanted);
  }
  SECTION("looked at again, it is another request") {
    bench.options.rescan = true;
    CHECK(Convert(bench.options).sealed);
    CHECK(Dataset::Open(bench.out()).size() == (gone ? 38 : 39));
    CHECK(Verify(bench.out(), {}).faults.empty());
  }
}

TEST_CASE("another request does not take the place of an unfinished one, unless that is asked for", "[resume]") {
  Bench bench;
  bench.Stop(5);
  const auto before = FilesOf(bench.out());
  bench.options.verify_images = VerifyImages::kHeader;
  CHECK_THROWS_WITH(Convert(bench.options), Contains("unfinished") && Contains("verify-images was decode"));
  CHECK(FilesOf(bench.out()) == before);
  bench.options.overwrite = true;
  CHECK(Convert(bench.options).sealed);
  const auto after = FilesOf(bench.out());
  CHECK(after.size() == bench.wanted.size());
}

TEST_CASE("a plan of bad inputs alone is withdrawn, so that a rerun after mending them goes well", "[resume]") {
  TemporaryFolder folder;
  WriteFile(folder / "tree" / "a" / "1.png", "no picture");
  const PackOptions options = Options(folder / "tree", folder / "out");
  CHECK_THROWS_WITH(Convert(options), Contains("no input is a good image"));
  CHECK_FALSE(fs::exists(folder / "out"));
  WriteFile(folder / "tree" / "a" / "1.png", Png(3, 3, 3));
  CHECK(Convert(options).manifest.records == 1);
}

TEST_CASE("an archive that was made anew with the same samples is read where they lie now", "[resume]") {
  TemporaryFolder folder;
  const auto make_tar = [&](const fs::path& path, bool more) {
    TarWriter tar(path);
    if (more) tar.Add("README.txt", AsBytes("in front of all samples"));
    for (int i = 0; i < 12; ++i) {
      const std::string key = std::to_string(100 + i);
      tar.Add(key + ".ppm", AsBytes(Ppm(8, 5, static_cast<char>(i))));
      tar.Add(key + ".cls", AsBytes(std::to_string(i % 3)));
    }
    tar.Finish();
  };
  make_tar(folder / "in.tar", false);
  make_tar(folder / "new.tar", true);
  PackOptions options = Options(folder / "in.tar", folder / "wanted");
  options.shard_records = 3;
  const Digest128 wanted = Convert(options).manifest.dataset_digest;
  options.output = folder / "out";
  options.part = {0, 4, ""};
  CHECK(Convert(options).shards_done == 1);
  fs::rename(folder / "new.tar", folder / "in.tar");
  options.part = {};
  const PackResult result = Convert(options);
  CHECK(result.resumed);
  CHECK(result.sealed);
  CHECK(result.manifest.bad_inputs == 0);
  CHECK(result.manifest.dataset_digest == wanted);
  CHECK(FilesOf(folder / "out") == FilesOf(folder / "wanted"));
}

TEST_CASE("a journal entry comes back as it was written, and not where a byte differs", "[journal]") {
  TemporaryFolder folder;
  fs::create_directories(folder / "work");
  FinishedShard shard;
  shard.number = 12;
  shard.entry = ShardEntry{"shard-00012-5f3a9c01.shard", 2, 999, {1, 2}, {3, 4}};
  RecordInfo info;
  info.width = 7;
  info.height = 9;
  info.raw_bytes = 100;
  info.stored_bytes = 50;
  info.encoding = Encoding::kBmp;
  info.codec = Codec::kZstd;
  shard.counts.Add(info, 120);
  shard.counts.statistics = ChannelSums{1, 63, {1, 2, 3}, {4, 5, 6}};
  shard.bad = {{"k\xFF", "s\n", "reason", 17, ErrorCode::kIo}, {"key", "source", "why", std::nullopt}};
  const Digest128 request{5, 6};
  WriteFinished(folder / "work", "token", request, shard);
  CHECK(FilesOf(folder / "work").size() == 1);
  const auto back = LoadFinished(folder / "work", request, 12);
  REQUIRE(back);
  CHECK(back->bad == shard.bad);
  CHECK(back->entry->digest == shard.entry->digest);
  CHECK(back->entry->index_digest == shard.entry->index_digest);
  CHECK(back->counts.widths == Histogram{{7, 1}});
  CHECK(back->counts.bytes_in == 120);
  CHECK(back->counts.statistics == shard.counts.statistics);
  CHECK_FALSE(LoadFinished(folder / "work", Digest128{5, 7}, 12));
  CHECK_FALSE(LoadFinished(folder / "work", request, 13));
  const std::string text = ReadFile(folder / "work" / "finished-00012");
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string bent = text;
    bent[i] ^= 2;
    WriteFile(folder / "work" / "finished-00012", bent);
    CHECK_FALSE(LoadFinished(folder / "work", request, 12));
  }
}

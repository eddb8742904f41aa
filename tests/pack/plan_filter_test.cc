// Which inputs are planned.
#include <algorithm>
#include <catch2/catch.hpp>
#include <clocale>

#include "tests/pack/made_source.h"

using namespace shardpack;
using namespace shardpack::testing;
using Catch::Matchers::Contains;

namespace {

using Strings = std::vector<std::string>;

Strings ManyKeys() {
  Strings keys;
  for (int i = 1000; i < 3000; ++i) keys.push_back("c/" + std::to_string(i) + ".jpg");
  return keys;
}

}  // namespace

TEST_CASE("globs match whole keys, a star slashes too", "[plan]") {
  PlanBench bench;
  bench.Add("tree", OfKeys({"a/1.jpg", "a/b/2.jpg", "a/b/3.png", "c/4.jpg", "c/5.jpg"}));
  SECTION("include") {
    bench.options.include = {"a/*.jpg", "c/[4]*"};
    CHECK(bench.Keys() == Strings{"a/1.jpg", "a/b/2.jpg", "c/4.jpg"});
  }
  SECTION("exclude") {
    bench.options.exclude = {"*/b/*", "?/5.jpg"};
    CHECK(bench.Keys() == Strings{"a/1.jpg", "c/4.jpg"});
  }
  SECTION("both") {
    bench.options.include = {"a/*"};
    bench.options.exclude = {"*.png"};
    CHECK(bench.Keys() == Strings{"a/1.jpg", "a/b/2.jpg"});
  }
  SECTION("nothing left") {
    bench.options.include = {"z*"};
    CHECK_THROWS_WITH(bench.Write(), Contains("none of 5 inputs is left by --include"));
    CHECK_FALSE(fs::exists(bench.File()));
  }
}

TEST_CASE("globs match bytes, whatever the locale of the process", "[plan]") {
  const char* locale = GENERATE("C", "C.UTF-8");
  if (std::setlocale(LC_ALL, locale) == nullptr) {
    WARN("no locale " << locale << ": it is not looked at");
    return;
  }
  PlanBench bench;
  bench.Add("tree", OfKeys({"c/e.jpg", "c/\xC3\xA9.jpg", "c/\xFF.jpg"}));
  bench.options.include = {"c/?.jpg"};
  const Strings keys = bench.Keys();
  std::setlocale(LC_ALL, "C");
  CHECK(keys == Strings{"c/e.jpg", "c/\xFF.jpg"});
}

TEST_CASE("globs see prefixes where keys have them", "[plan]") {
  PlanBench bench;
  bench.Add("one", OfKeys({"c/1", "c/2"}));
  bench.Add("two", OfKeys({"c/1", "c/3"}));
  bench.options.exclude = {"one/*1"};
  CHECK(bench.Keys() == Strings{"one/c/2", "two/c/1", "two/c/3"});
}

TEST_CASE("shares of a split are disjoint and complete", "[plan]") {
  const Strings keys = ManyKeys();
  const auto share = [&](double begin, double end, const std::vector<std::string>& sources) {
    PlanBench bench;
    bench.options.share = KeyShare{"s", begin, end};
    for (const std::string& source : sources) bench.Add(source, OfKeys(keys));
    return bench.Keys();
  };
  Strings all;
  for (const auto& [begin, end] : {std::pair{0.0, 0.1}, {0.1, 0.3}, {0.3, 1.0}}) {
    const Strings some = share(begin, end, {"tree"});
    CHECK(std::abs(static_cast<double>(some.size()) - 2000 * (end - begin)) < 130);
    all.insert(all.end(), some.begin(), some.end());
  }
  std::sort(all.begin(), all.end());
  CHECK(all == keys);
  // Whether keys are prefixed does not depend on what the share leaves.
  const Strings clashing = share(0, 0.01, {"one", "two"});
  CHECK(std::all_of(clashing.begin(), clashing.end(), [](const std::string& key) { return key[3] == '/'; }));
}

TEST_CASE("an input belongs to a share by the hash of its key as a fraction of 2^64", "[plan]") {
  // XXH3-64 of "c/1000.jpg" by the xxhash package of Python.
  PlanBench bench;
  bench.Add("tree", OfKeys({"c/1000.jpg"}));
  const double fraction = static_cast<double>(0x55df0dafad124481ull) / 18446744073709551616.0;
  bench.options.share = KeyShare{"s", fraction - 1e-9, fraction + 1e-9};
  CHECK(bench.Keys().size() == 1);
  bench.options.share = KeyShare{"s", 0, fraction - 1e-9};
  CHECK_THROWS_WITH(bench.Write(), Contains("none of 1 inputs"));
  bench.options.share = KeyShare{"s", fraction + 1e-9, 1};
  CHECK_THROWS_WITH(bench.Write(), Contains("none of 1 inputs"));
}

TEST_CASE("a limit takes the first of the order", "[plan]") {
  PlanBench bench;
  bench.options.limit = 2;
  bench.Add("list", OfKeys({"z", "b", "y", "a"}), SourceKind::kCsv);
  CHECK(bench.Keys() == Strings{"z", "b"});
  bench.options.order = RecordOrder::kName;
  CHECK(bench.Keys() == Strings{"a", "b"});
}

TEST_CASE("no input at all is a bad input that says what a tree looks like", "[plan]") {
  PlanBench bench;
  MadeSource& tree = bench.Add("tree", {});
  const auto why = [&] {
    try {
      bench.Write();
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kBadInput);
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const std::string where = "no image in " + (bench.folder / "tree").native();
  CHECK(why() == where + ": there are no class folders; a tree has one folder a class, each with its pictures");
  tree.classes = {"a", "b"};
  CHECK(why() == where + ": none of its 2 class folders has a picture");
  bench.Add("more", {}, SourceKind::kCsv);
  CHECK_THAT(why(), Contains("tree and the other sources"));
}

TEST_CASE("stopping stops", "[plan]") {
  std::atomic<bool> stop{false};
  PlanBench bench;
  bench.options.stop = &stop;
  bench.Add("tree", OfKeys(ManyKeys()));
  SECTION("while scanning") { stop = true; }
  SECTION("while planning") {
    bench.options.progress = [&](const PackProgress&) { stop = true; };
  }
  CHECK_THROWS_AS(bench.Write(), Interrupted);
  CHECK_FALSE(fs::exists(bench.File()));
  CHECK(fs::is_empty(bench.folder / "scratch"));
}

TEST_CASE("progress counts the inputs found, then those planned", "[plan]") {
  std::vector<std::pair<std::string, std::uint64_t>> stages;
  PlanBench bench;
  bench.options.progress = [&](const PackProgress& now) { stages.emplace_back(now.stage, now.inputs_done); };
  bench.Add("tree", OfKeys(ManyKeys()));
  bench.Write();
  CHECK(std::count(stages.begin(), stages.end(), std::pair<std::string, std::uint64_t>{"scanning", 2000}) == 1);
  CHECK(stages.back() == std::pair<std::string, std::uint64_t>{"planning", 2000});
}

#include "libshard/pack/scan.h"

#include <catch2/catch.hpp>

#include "shardpack/error.h"
#include "tests/pack/made_tree.h"

using namespace shardpack;
using namespace shardpack::testing;
using Catch::Matchers::Contains;

namespace {

Inputs Scan(const fs::path& root, const std::vector<std::string>* classes = nullptr) {
  return ScanFolders({{root}, classes, nullptr});
}

std::vector<std::string> Keys(const Inputs& inputs) {
  std::vector<std::string> keys;
  for (const Input& input : inputs.list) keys.emplace_back(input.key);
  return keys;
}

}  // namespace

TEST_CASE("keys come in byte order of whole paths, folders standing as their name and a slash", "[scan]") {
  TemporaryFolder folder;
  // By bytes: ' ' < '-' < '.' < '/' < '0'.
  for (const char* key :
       {"c/a/1.png", "c/a-b.png", "c/a 0.png", "c/a0.png", "c/a.png", "c-d/x.png", "c d/x.png", "B/x.png"}) {
    WriteFile(folder / "tree" / key, "x");
  }
  CHECK(Keys(Scan(folder / "tree")) == std::vector<std::string>{"B/x.png", "c d/x.png", "c-d/x.png", "c/a 0.png",
                                                                "c/a-b.png", "c/a.png", "c/a/1.png", "c/a0.png"});
}

TEST_CASE("classes are numbered in byte order of their names, deeper pictures belong to the top folder", "[scan]") {
  TemporaryFolder folder;
  for (const char* key : {"b/deep/er/1.jpg", "10/1.jpg", "2/1.jpg", "B/1.jpg"}) WriteFile(folder / "tree" / key, "x");
  const Inputs inputs = Scan(folder / "tree");
  CHECK(inputs.classes == std::vector<std::string>{"10", "2", "B", "b"});
  CHECK(inputs.list.back().key == "b/deep/er/1.jpg");
  CHECK(inputs.list.back().label == 3);
}

TEST_CASE("names are candidates by extension in any letter case", "[scan]") {
  for (const char* name : {"a.jpg", "a.JPEG", "a.Jpe", "a.jfif", "a.png", "a.WebP", "a.bmp", "a.gif", "a.tif", "a.tiff",
                           "a.ppm", "a.pgm", "a.pbm", "a.pnm", ".b.png"}) {
    CHECK(IsCandidateName(name));
  }
  for (const char* name : {"jpg", "a.txt", "a.jpg.txt", "a.", "a", "Thumbs.db", "a.jpegx"})
    CHECK_FALSE(IsCandidateName(name));
}

TEST_CASE("hidden names, other files and special files are passed over and counted", "[scan]") {
  TemporaryFolder folder;
  for (const char* key : {"a/1.jpg", "a/._1.jpg", "a/.hidden/2.jpg", "a/notes.txt", ".cache/3.jpg"})
    WriteFile(folder / "tree" / key, "x");
  REQUIRE(mkfifo((folder / "tree" / "a" / "pipe.jpg").c_str(), 0600) == 0);
  const Inputs inputs = Scan(folder / "tree");
  CHECK(Keys(inputs) == std::vector<std::string>{"a/1.jpg"});
  CHECK(inputs.ignored_files == 5);  // two hidden ones in a, the text, the pipe, .cache
}

TEST_CASE("links are followed, loops are not entered again, dangling links are bad inputs", "[scan]") {
  TemporaryFolder folder;
  WriteFile(folder / "tree" / "a/1.jpg", "xy");
  WriteFile(folder / "elsewhere" / "z.jpg", "xyz");
  fs::create_directory_symlink(folder / "tree", folder / "tree" / "a" / "loop");
  fs::create_directory_symlink(folder / "elsewhere", folder / "tree" / "b");
  fs::create_symlink("1.jpg", folder / "tree" / "a" / "linked.jpg");
  fs::create_symlink("nowhere", folder / "tree" / "a" / "gone.jpg");
  fs::create_symlink("nowhere", folder / "tree" / "a" / "gone.txt");
  fs::create_directory_symlink(".", folder / "tree" / "self");
  const Inputs inputs = Scan(folder / "tree");
  CHECK(Keys(inputs) == std::vector<std::string>{"a/1.jpg", "a/gone.jpg", "a/linked.jpg", "b/z.jpg"});
  CHECK(inputs.classes == std::vector<std::string>{"a", "b"});
  CHECK(inputs.list[1].error == ENOENT);
  CHECK(inputs.list[2].size == 2);
}

TEST_CASE("an empty class keeps its number and is warned of", "[scan]") {
  TemporaryFolder folder;
  WriteFile(folder / "tree" / "a/1.jpg", "x");
  WriteFile(folder / "tree" / "c/1.jpg", "x");
  fs::create_directories(folder / "tree" / "b_empty");
  const Inputs inputs = Scan(folder / "tree");
  CHECK(inputs.list.back().label == 2);
  CHECK(inputs.warnings == std::vector<std::string>{"class b_empty has no images"});
}

TEST_CASE("pictures directly under the root are warned of and left out", "[scan]") {
  TemporaryFolder folder;
  WriteFile(folder / "tree" / "a/1.jpg", "x");
  WriteFile(folder / "tree" / "stray.jpg", "x");
  const Inputs inputs = Scan(folder / "tree");
  CHECK(inputs.list.size() == 1);
  CHECK(inputs.ignored_files == 1);
  CHECK_THAT(inputs.warnings.at(0), Contains("stray.jpg") && Contains("no class folder"));
}

TEST_CASE("a tree without any picture is a bad input", "[scan]") {
  TemporaryFolder folder;
  fs::create_directories(folder / "tree" / "a");
  try {
    Scan(folder / "tree");
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kBadInput);
    CHECK_THAT(error.what(), Contains("no image"));
  }
}

TEST_CASE("pinned classes give the numbers, and another class with pictures is an error that names it", "[scan]") {
  TemporaryFolder folder;
  WriteFile(folder / "tree" / "cat/1.jpg", "x");
  fs::create_directories(folder / "tree" / "unused");
  const std::vector<std::string> pinned{"dog", "cat"};
  CHECK(Scan(folder / "tree", &pinned).list[0].label == 1);
  WriteFile(folder / "tree" / "bird/1.jpg", "x");
  CHECK_THROWS_WITH(Scan(folder / "tree", &pinned), Contains("class bird"));
}

TEST_CASE("keys of several sources are prefixed by the sources' names where they would clash", "[scan]") {
  TemporaryFolder folder;
  WriteFile(folder / "one" / "a/1.jpg", "x");
  WriteFile(folder / "two" / "a/1.jpg", "xy");
  WriteFile(folder / "three" / "b/1.jpg", "xyz");
  CHECK(Keys(ScanFolders({{folder / "one", folder / "three"}, nullptr, nullptr})) ==
        std::vector<std::string>{"a/1.jpg", "b/1.jpg"});
  const Inputs both = ScanFolders({{folder / "one", folder / "two"}, nullptr, nullptr});
  CHECK(Keys(both) == std::vector<std::string>{"one/a/1.jpg", "two/a/1.jpg"});
  CHECK(both.PathOf(both.list[1]) == "a/1.jpg");
  CHECK_THROWS_WITH(ScanFolders({{folder / "one", folder / "one"}, nullptr, nullptr}),
                    Contains("given twice"));
}

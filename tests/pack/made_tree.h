// Folders of small pictures, made for a test and removed after it.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <string_view>

#include "shardpack/image.h"
#include "shardpack/pack.h"

namespace shardpack::testing {

namespace fs = std::filesystem;

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "shardpack-test-XXXXXX").native();
    path_ = mkdtemp(name.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  fs::path operator/(std::string_view name) const { return path_ / name; }

 private:
  fs::path path_;
};

inline void WriteFile(const fs::path& path, std::string_view content) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << content;
}

inline std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// A binary PPM of one colour: a whole picture in a line, and one that compresses.
inline std::string Ppm(int width, int height, char colour) {
  return "P6\n" + std::to_string(width) + " " + std::to_string(height) + "\n255\n" +
         std::string(static_cast<std::size_t>(width * height * 3), colour);
}

inline std::string Png(std::uint32_t width, std::uint32_t height, std::uint8_t colour) {
  const auto bytes = EncodePng({width, height, std::vector<std::uint8_t>(std::size_t{width} * height * 3, colour)});
  return std::string(AsText(bytes));
}

// Name and content of each file directly in the folder.
inline std::map<std::string, std::string> FilesOf(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    files[entry.path().filename().native()] = entry.is_regular_file() ? ReadFile(entry.path()) : "(not a file)";
  }
  return files;
}

// Twelve pictures of three kinds in three classes.
inline fs::path MakeTree(const TemporaryFolder& folder, std::string_view name = "tree") {
  const fs::path root = folder / name;
  for (int i = 0; i < 12; ++i) {
    const std::string number = std::to_string(i);
    const fs::path file =
        root / ("class" + std::to_string(i % 3)) / ("image" + number + (i % 2 == 0 ? ".png" : ".ppm"));
    WriteFile(file,
              i % 2 == 0 ? Png(8 + i, 5, static_cast<std::uint8_t>(i * 20)) : Ppm(8 + i, 6, static_cast<char>(i)));
  }
  return root;
}

inline PackOptions Options(const fs::path& source, const fs::path& output) {
  PackOptions options;
  options.sources = {source};
  options.output = output;
  options.threads = 2;
  return options;
}

}  // namespace shardpack::testing

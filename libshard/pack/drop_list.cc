#include "libshard/pack/drop_list.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>

#include "libshard/store/checksum.h"
#include "libshard/store/coding.h"
#include "libshard/store/text.h"
#include "shardpack/error.h"

namespace shardpack {
namespace {

using nlohmann::json;

class LedgerReader {
 public:
  explicit LedgerReader(const std::filesystem::path& path) : path_(path) {}

  DropList Read() {
    errno = 0;
    std::ifstream file(path_, std::ios::binary);
    if (!file) ThrowSystemError(errno != 0 ? errno : EIO, "open", path_.native());
    for (std::string text; std::getline(file, text);) {
      ++line_;
      if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
      const json line = json::parse(text, nullptr, false);
      if (!line.is_object()) Refuse("is no JSON object");
      if (const auto faults = line.find("faults"); faults != line.end() && faults->is_array()) {
        for (const json& fault : *faults) Take(fault);
      } else {
        Take(line);
      }
    }
    if (file.bad()) ThrowSystemError(errno != 0 ? errno : EIO, "read", path_.native());
    std::sort(list_.keys.begin(), list_.keys.end());
    list_.keys.erase(std::unique(list_.keys.begin(), list_.keys.end()), list_.keys.end());
    return std::move(list_);
  }

 private:
  [[noreturn]] void Refuse(const std::string& why) const {
    throw Error(ErrorCode::kBadInput, Location{path_.native(), {}, {}}, "line " + std::to_string(line_) + " " + why);
  }

  void Take(const json& entry) {
    if (!entry.is_object()) Refuse("has a fault that is no object");
    const auto key = entry.find("key"), hex = entry.find("key_hex");
    if (hex != entry.end()) {
      const auto bytes = hex->is_string() ? FromHex(hex->get_ref<const std::string&>()) : std::nullopt;
      if (!bytes) Refuse("has a key_hex that is not pairs of lower-case hexadecimal digits");
      list_.keys.push_back(*bytes);
    } else if (key == entry.end()) {
      Refuse("has neither key nor key_hex");
    } else if (key->is_null()) {
      ++list_.lines_without_key;
    } else if (key->is_string()) {
      list_.keys.push_back(key->get<std::string>());
    } else {
      Refuse("has a key that is no text");
    }
  }

  const std::filesystem::path& path_;
  std::uint64_t line_ = 0;
  DropList list_;
};

}  // namespace

Digest128 DropList::Digest() const {
  Xxh3Stream128 stream;
  for (const std::string& key : keys) {
    std::byte size[8];
    Store(size, std::uint64_t{key.size()});
    stream.Add(size);
    stream.Add(AsBytes(key));
  }
  return stream.Finish();
}

DropList ReadDropList(const std::filesystem::path& ledger) { return LedgerReader(ledger).Read(); }

}  // namespace shardpack

#include "libshard/pack/ledger.h"

#include <fcntl.h>

#include <cerrno>

#include "libshard/pack/json_text.h"
#include "shardpack/manifest.h"

namespace shardpack {

std::string LedgerText(const std::vector<BadInput>& bad) {
  std::string text;
  for (const BadInput& input : bad) {
    nlohmann::ordered_json line;
    PutBytes(line, "key", input.key);
    PutBytes(line, "source", input.source);
    line["reason"] = Escaped(input.reason);
    line["offset"] = input.offset ? nlohmann::ordered_json(*input.offset) : nlohmann::ordered_json(nullptr);
    text += line.dump() + "\n";
  }
  return text;
}

void WriteLedger(const std::filesystem::path& folder, const std::vector<BadInput>& bad) {
  const std::filesystem::path target = folder / kLedgerName;
  const std::string partial = target.native() + ".partial";
  const std::string text = LedgerText(bad);
  // Made anew: what a link of that name leads to is not ours.
  if (unlink(partial.c_str()) != 0 && errno != ENOENT) ThrowSystemError(errno, "remove", partial);
  FileHandle file(open(partial.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file) ThrowSystemError(errno, "create", partial);
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = write(file.get(), text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) ThrowSystemError(errno, "write", partial);
    done += static_cast<std::size_t>(n);
  }
  if (fsync(file.get()) != 0) ThrowSystemError(errno, "sync", partial);
  if (rename(partial.c_str(), target.c_str()) != 0) ThrowSystemError(errno, "rename into place", target.native());
}

void RemoveLedger(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / kLedgerName;
  if (unlink(path.c_str()) != 0 && errno != ENOENT) ThrowSystemError(errno, "remove", path.native());
}

}  // namespace shardpack

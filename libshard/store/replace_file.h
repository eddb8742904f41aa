// Putting a small file in place as a whole.
#pragma once

#include <filesystem>
#include <string_view>

namespace shardpack {

// Writes `text` to `partial`, syncs it and renames it to `target`, on the same file system: whoever opens `target`
// finds the old text or the new one. Sync the folder afterwards. `partial` is made anew: what a link of that name leads
// to is never written. Leaves no `partial` behind where it fails. Throws Error with kIo or kNotFound.
void ReplaceFile(const std::filesystem::path& partial, const std::filesystem::path& target, std::string_view text);

}  // namespace shardpack

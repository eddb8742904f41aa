// Numbers as people read and write them.
#pragma once

#include <cstdint>
#include <string>

namespace shardpack::tools {

std::string HumanBytes(std::uint64_t bytes);                        // "987 B", "1.2 KiB", "110 MiB"
std::string HumanCount(std::uint64_t count);                        // "1,281,167"
std::string HumanSeconds(double seconds);                           // "0.4 s", "12 s", "3 min 05 s", "2 h 10 min"
std::string Counted(std::uint64_t count, const std::string& noun);  // "1 record", "2 records", "3 classes"

// "256MiB", "1GB", "4096", "1.5 GiB", in any letter case; of 1 or more. Throws Error with kInvalidArgument, which names
// the option.
std::uint64_t ParseBytes(const std::string& option, const std::string& text);

}  // namespace shardpack::tools

// The exit statuses of all programs.
#pragma once

namespace shardpack::tools {

inline constexpr int kDone = 0;
inline constexpr int kDoneWithBadInputs = 1;  // the policy tolerated them
inline constexpr int kUsage = 2;
inline constexpr int kDamage = 3;   // bad input or damage found
inline constexpr int kRefused = 4;  // the system refused: disk full, permission
inline constexpr int kInterrupted = 130;

}  // namespace shardpack::tools

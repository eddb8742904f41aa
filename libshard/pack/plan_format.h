// The bytes of a plan (docs/formats/plan.md). Encoding and decoding only; files are plan_writer.h and plan_file.h.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "libshard/pack/plan_file.h"

namespace shardpack {

inline constexpr std::string_view kPlanMagic{"SHPKPLAN", 8};
inline constexpr std::uint32_t kPlanVersion = 1;
inline constexpr std::size_t kPlanHeaderBytes = 64;
inline constexpr std::size_t kPlanRowBytes = 48;
// With its prefix. Longer ones than a shard can hold (65,535) are planned as bad inputs.
inline constexpr std::size_t kMaxPlannedKey = 1 << 20;

// Where a plan's parts lie, at its beginning. Sections, table and head follow in this order without a gap.
struct PlanHeader {
  std::uint64_t table_offset = 0, num_shards = 0;
  std::uint64_t head_offset = 0, head_bytes = 0;
  std::uint64_t table_xxh3 = 0, head_xxh3 = 0;

  std::array<char, kPlanHeaderBytes> Encode() const;
  // Checks everything that can be checked against the size of the file. Throws Error with kCorruption, kUnsupported.
  static PlanHeader Decode(Bytes file, const std::string& path);
};

// A row of the table of shards.
struct PlanRow {
  std::uint64_t offset = 0, bytes = 0;        // of the section
  std::uint64_t inputs = 0, input_bytes = 0;  // sums
  Digest128 digest;                           // of the section

  void EncodeTo(std::string& out) const;
  static PlanRow Decode(Bytes row);  // precondition: kPlanRowBytes
};

std::string EncodePlanHead(const PlanHead& head);
PlanHead DecodePlanHead(Bytes bytes, const Location& where);

// Appends one input; keys share their beginning with the one before in the section.
void EncodePlannedInput(const PlannedInput& input, std::string_view key_before, std::string& out);
// The inputs of a section that was verified.
PlannedShard DecodePlanSection(Bytes section, std::uint64_t num_inputs, const Location& where);

// Numbers of 7 bits a byte, the lowest first; signed ones with the sign in the lowest bit.
void PutVarint(std::string& out, std::uint64_t value);
void PutSigned(std::string& out, std::int64_t value);
void PutText(std::string& out, std::string_view text);  // after its length

// Reads what the functions above wrote; never past the end. Throws Error with kCorruption.
class PlanBytes {
 public:
  PlanBytes(Bytes bytes, const Location& where) : bytes_(bytes), where_(where) {}

  std::uint8_t Byte();
  std::uint64_t Varint();
  // A Varint() that must not be above `most`.
  template <typename T>
  T Narrow(std::uint64_t most = std::numeric_limits<T>::max()) {
    const std::uint64_t value = Varint();
    if (value > most) Fail("a number is out of range");
    return static_cast<T>(value);
  }
  std::int64_t Signed();
  std::string_view Text();
  std::string_view Take(std::uint64_t bytes);
  bool AtEnd() const { return bytes_.empty(); }
  std::size_t left() const { return bytes_.size(); }
  [[noreturn]] void Fail(const std::string& reason) const;

 private:
  Bytes bytes_;
  const Location& where_;
};

}  // namespace shardpack

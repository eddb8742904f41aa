#include "libshard/pack/plan_format.h"

#include <cstring>
#include <limits>

#include "libshard/store/coding.h"

namespace shardpack {
namespace {

constexpr std::size_t kHeaderChecked = kPlanHeaderBytes - sizeof(std::uint64_t);

[[noreturn]] void Corrupt(const Location& where, const std::string& reason) {
  throw Error(ErrorCode::kCorruption, where, "damaged plan: " + reason);
}

void PutDigest(std::string& out, const Digest128& digest) {
  char bytes[16];
  Store(bytes, digest.high);
  Store(bytes + 8, digest.low);
  out.append(bytes, sizeof bytes);
}

Digest128 TakeDigest(PlanBytes& from) {
  const std::string_view bytes = from.Take(16);
  return {Load<std::uint64_t>(bytes.data()), Load<std::uint64_t>(bytes.data() + 8)};
}

void PutTexts(std::string& out, const std::vector<std::string>& texts) {
  PutVarint(out, texts.size());
  for (const std::string& text : texts) PutText(out, text);
}

// A list's count before its elements, of which each takes `least` bytes.
std::uint64_t TakeCount(PlanBytes& from, std::uint64_t least = 1) {
  const std::uint64_t count = from.Varint();
  if (count > from.left() / least) from.Fail("a list leaves its place");
  return count;
}

std::vector<std::string> TakeTexts(PlanBytes& from) {
  std::vector<std::string> texts(TakeCount(from));
  for (std::string& text : texts) text = from.Text();
  return texts;
}

void PutCodecs(std::string& out, const CodecPlan& codecs) {
  PutVarint(out, codecs.rules.size());
  for (const CodecPlan::Rule& rule : codecs.rules) {
    PutVarint(out, static_cast<std::uint64_t>(rule.encoding));
    PutVarint(out, static_cast<std::uint64_t>(rule.codec));
  }
  PutVarint(out, static_cast<std::uint64_t>(codecs.fallback));
  PutSigned(out, codecs.level);
  PutVarint(out, codecs.tiny_bytes);
  PutText(out, AsText(codecs.dictionary));
  PutVarint(out, codecs.receipts.size());
  for (const CodecReceipt& receipt : codecs.receipts) {
    PutText(out, receipt.encoding);
    PutText(out, receipt.codec);
    PutVarint(out, receipt.sample_records);
    PutVarint(out, receipt.sample_raw_bytes);
    PutVarint(out, receipt.sample_stored_bytes);
    PutVarint(out, receipt.decode_ns_per_record);
  }
}

Codec TakeCodec(PlanBytes& from) { return static_cast<Codec>(from.Narrow<std::uint8_t>(3)); }

CodecPlan TakeCodecs(PlanBytes& from) {
  CodecPlan codecs;
  codecs.rules.resize(TakeCount(from, 2));
  for (CodecPlan::Rule& rule : codecs.rules) {
    rule.encoding = static_cast<Encoding>(from.Narrow<std::uint8_t>());
    rule.codec = TakeCodec(from);
  }
  codecs.fallback = TakeCodec(from);
  const std::int64_t level = from.Signed();
  if (level < std::numeric_limits<int>::min() || level > std::numeric_limits<int>::max()) from.Fail("a level of zstd");
  codecs.level = static_cast<int>(level);
  codecs.tiny_bytes = from.Varint();
  const Bytes dictionary = AsBytes(from.Text());
  codecs.dictionary.assign(dictionary.begin(), dictionary.end());
  codecs.receipts.resize(TakeCount(from, 6));
  for (CodecReceipt& receipt : codecs.receipts) {
    receipt.encoding = from.Text();
    receipt.codec = from.Text();
    receipt.sample_records = from.Varint();
    receipt.sample_raw_bytes = from.Varint();
    receipt.sample_stored_bytes = from.Varint();
    receipt.decode_ns_per_record = from.Varint();
  }
  return codecs;
}

}  // namespace

void PutVarint(std::string& out, std::uint64_t value) {
  while (value >= 0x80) {
    out += static_cast<char>(value | 0x80);
    value >>= 7;
  }
  out += static_cast<char>(value);
}

void PutSigned(std::string& out, std::int64_t value) {
  PutVarint(out, static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63));
}

void PutText(std::string& out, std::string_view text) {
  PutVarint(out, text.size());
  out += text;
}

void PlanBytes::Fail(const std::string& reason) const { Corrupt(where_, reason); }

std::uint8_t PlanBytes::Byte() {
  if (bytes_.empty()) Fail("it ends within an entry");
  const auto byte = static_cast<std::uint8_t>(bytes_[0]);
  bytes_ = bytes_.subspan(1);
  return byte;
}

std::uint64_t PlanBytes::Varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const std::uint8_t byte = Byte();
    if (shift == 63 && byte > 1) break;
    value |= std::uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80) return value;
  }
  Fail("a number of more than 64 bits");
}

std::int64_t PlanBytes::Signed() {
  const std::uint64_t value = Varint();
  return static_cast<std::int64_t>(value >> 1 ^ (~(value & 1) + 1));
}

std::string_view PlanBytes::Take(std::uint64_t bytes) {
  if (bytes > bytes_.size()) Fail("a text leaves its place");
  const std::string_view text = AsText(bytes_.first(bytes));
  bytes_ = bytes_.subspan(bytes);
  return text;
}

std::string_view PlanBytes::Text() { return Take(Varint()); }

std::array<char, kPlanHeaderBytes> PlanHeader::Encode() const {
  std::array<char, kPlanHeaderBytes> out{};
  std::memcpy(&out[0], kPlanMagic.data(), kPlanMagic.size());
  Store(&out[8], std::uint64_t{kPlanVersion});
  Store(&out[16], table_offset);
  Store(&out[24], num_shards);
  Store(&out[32], head_bytes);
  Store(&out[40], table_xxh3);
  Store(&out[48], head_xxh3);
  Store(&out[kHeaderChecked], Xxh3_64(AsBytes({out.data(), kHeaderChecked})));
  return out;
}

PlanHeader PlanHeader::Decode(Bytes file, const std::string& path) {
  const Location where{path, {}, {}};
  if (file.size() < kPlanHeaderBytes || !AsText(file).starts_with(kPlanMagic)) Corrupt(where, "it has no header");
  if (Load<std::uint64_t>(&file[kHeaderChecked]) != Xxh3_64(file.first(kHeaderChecked))) {
    Corrupt(where, "checksum mismatch in its header");
  }
  const auto version = Load<std::uint64_t>(&file[8]);
  if (version != kPlanVersion) {
    throw Error(ErrorCode::kUnsupported, where,
                "the plan was made by another version of shardpack (its format is " + std::to_string(version) +
                    ", this one reads " + std::to_string(kPlanVersion) + ")");
  }
  PlanHeader header;
  header.table_offset = Load<std::uint64_t>(&file[16]);
  header.num_shards = Load<std::uint64_t>(&file[24]);
  header.head_bytes = Load<std::uint64_t>(&file[32]);
  header.table_xxh3 = Load<std::uint64_t>(&file[40]);
  header.head_xxh3 = Load<std::uint64_t>(&file[48]);
  if (header.table_offset < kPlanHeaderBytes || header.table_offset > file.size() ||
      header.num_shards > (file.size() - header.table_offset) / kPlanRowBytes) {
    Corrupt(where, "its table leaves the file");
  }
  header.head_offset = header.table_offset + header.num_shards * kPlanRowBytes;
  if (header.head_bytes != file.size() - header.head_offset) Corrupt(where, "its head does not end with the file");
  return header;
}

void PlanRow::EncodeTo(std::string& out) const {
  char row[kPlanRowBytes];
  Store(row, offset);
  Store(row + 8, bytes);
  Store(row + 16, inputs);
  Store(row + 24, input_bytes);
  Store(row + 32, digest.high);
  Store(row + 40, digest.low);
  out.append(row, sizeof row);
}

PlanRow PlanRow::Decode(Bytes row) {
  return {Load<std::uint64_t>(&row[0]),
          Load<std::uint64_t>(&row[8]),
          Load<std::uint64_t>(&row[16]),
          Load<std::uint64_t>(&row[24]),
          {Load<std::uint64_t>(&row[32]), Load<std::uint64_t>(&row[40])}};
}

std::string EncodePlanHead(const PlanHead& head) {
  std::string out;
  PutVarint(out, head.options.size());
  for (const auto& [name, value] : head.options) {
    PutText(out, name);
    PutText(out, value);
  }
  PutText(out, head.name);
  PutVarint(out, static_cast<std::uint64_t>(head.label_kind));
  PutTexts(out, head.classes);
  PutVarint(out, head.num_inputs);
  PutVarint(out, head.bytes);
  PutVarint(out, head.ignored_files);
  PutTexts(out, head.warnings);
  PutCodecs(out, head.codecs);
  PutDigest(out, head.request_digest);
  PutTexts(out, head.source_marks);
  PutVarint(out, head.max_bad ? 1 : 0);
  if (head.max_bad) PutVarint(out, *head.max_bad);
  PutVarint(out, head.overwrite ? 1 : 0);
  PutVarint(out, head.base_dataset ? 1 : 0);
  if (head.base_dataset) PutDigest(out, *head.base_dataset);
  PutVarint(out, head.first_shard);
  return out;
}

PlanHead DecodePlanHead(Bytes bytes, const Location& where) {
  PlanBytes from(bytes, where);
  PlanHead head;
  for (std::uint64_t left = TakeCount(from, 2); left > 0; --left) {
    const std::string_view name = from.Text();
    head.options[std::string(name)] = from.Text();
  }
  head.name = from.Text();
  head.label_kind = static_cast<LabelKind>(from.Narrow<int>(static_cast<int>(LabelKind::kFloat)));
  head.classes = TakeTexts(from);
  head.num_inputs = from.Varint();
  head.bytes = from.Varint();
  head.ignored_files = from.Varint();
  head.warnings = TakeTexts(from);
  head.codecs = TakeCodecs(from);
  head.request_digest = TakeDigest(from);
  head.source_marks = TakeTexts(from);
  if (from.Narrow<int>(1) == 1) head.max_bad = from.Varint();
  head.overwrite = from.Narrow<int>(1) == 1;
  if (from.Narrow<int>(1) == 1) head.base_dataset = TakeDigest(from);
  head.first_shard = from.Varint();
  if (!from.AtEnd()) from.Fail("its head is longer than it should be");
  return head;
}

}  // namespace shardpack

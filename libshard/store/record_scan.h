// Finds records by the headers before them, in a shard whose index cannot be trusted.
#pragma once

#include <cstdint>
#include <optional>

#include "libshard/store/record_format.h"
#include "shardpack/record.h"

namespace shardpack {

// What a record header, whose checksum is right, says. Views point into the file.
struct ScannedRecord {
  std::uint64_t offset = 0;  // of the header
  RecordHeader header;       // record kDictionaryRecord: a copy of the dictionary; codec kZstdBlock: several records
  std::uint64_t payload_offset = 0;
  Bytes payload;              // what the file has of it
  bool payload_good = false;  // all of it is there, and the low half of its checksum fits
  std::uint64_t end = 0;      // where the next header is expected; past the end of the file where the payload leaves it
};

// Visits the records between `begin` and the end of `file` in the order of their place. A good record is passed as a
// whole, so that nothing inside its payload is taken for a record; the payload of a harmed one is searched, for what
// was cut out of the file may have brought the next record nearer. Headers are found at any byte, not at multiples of 8
// alone: a cut or an insertion moves what follows.
class RecordScan {
 public:
  RecordScan(Bytes file, std::uint64_t sync_marker, std::uint64_t begin = kHeaderBytes)
      : file_(file), sync_marker_(sync_marker), position_(begin) {}

  // The next; nullopt after the last.
  std::optional<ScannedRecord> Next();

 private:
  Bytes file_;
  std::uint64_t sync_marker_;
  std::uint64_t position_;
};

// The marker before the shard's records: that of the header, else of the footer, where their checksums are right; else
// that which most of the first record headers have. nullopt where there is no record header either.
std::optional<std::uint64_t> FindSyncMarker(Bytes file);

// The copy of the dictionary that lies before the first record; empty where there is none that is whole.
Bytes FindDictionary(Bytes file, std::uint64_t sync_marker);

}  // namespace shardpack

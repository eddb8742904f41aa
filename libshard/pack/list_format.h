// What CSV and JSON lines are alike in: rows that name a file and its label.
#pragma once

#include <memory>
#include <string>

#include "libshard/pack/csv_reader.h"
#include "libshard/pack/sample_label.h"
#include "libshard/pack/source.h"

namespace shardpack {

struct ListEntry {
  std::string path;
  OwnedLabel label;
  std::string metadata;  // a JSON object, or empty
};

class ListFormat {
 public:
  virtual ~ListFormat() = default;

  // To the next row; false behind the last. From one thread. Throws Error with kBadInput that names file and line.
  virtual bool Next(ListRow& row) = 0;
  // Of a row. Any thread. Throws Error with kBadInput without file and line.
  virtual ListEntry Parse(const ListRow& row) const = 0;
  // What labels that are not all of the kind of the first may be mended by; empty: nothing comes to mind.
  virtual std::string Advice() const = 0;
};

// Looks over all labels of the file first, for what they are is known only then. Throws Error: kBadInput, kIo;
// kInvalidArgument where a column is missing. Interrupted.
std::unique_ptr<ListFormat> OpenCsvList(const ArchiveFile& file, const PackOptions& options,
                                        const std::atomic<bool>* stop, InputSink& sink);
std::unique_ptr<ListFormat> OpenJsonList(const ArchiveFile& file, const PackOptions& options);

}  // namespace shardpack

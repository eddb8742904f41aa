// Where inputs come from: one interface over folders, lists, archives and datasets.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shardpack/error.h"
#include "shardpack/manifest.h"
#include "shardpack/pack.h"

namespace shardpack {

// The label of an input as its source states it.
struct SourceLabel {
  LabelKind kind = LabelKind::kClass;
  std::int64_t number = 0;  // kInteger
  // kClass: the name of the class, byte for byte. kList: "[1,5,7]". kFloat: the shortest decimal that reads back as the
  // same double. Both are JSON.
  std::string_view text;
};

// One input as a scan finds it. All views end with the call they are handed to.
struct FoundInput {
  std::string_view key;    // without the prefix that several sources may need
  std::uint64_t size = 0;  // bytes that Read() will give
  std::uint64_t sequence =
      0;  // ascending in the order the source lists its inputs; 0 for all where it has no order (folders)
  SourceLabel label;
  std::string_view metadata;  // a JSON object without a member "label" for kList and kFloat; or empty
  std::string_view locator;   // what Read() finds it by; private to the source. Empty: the key says it all
  // Not usable, as the scan could see already (a link that leads nowhere, a file that a list names and that is
  // missing): the reason, else empty. It becomes a bad input when its shard is packed.
  std::string_view bad;
  ErrorCode bad_code = ErrorCode::kBadInput;
};

// An input of the plan: as found, with what planning decided. Views point into the PlannedShard it is of.
struct PlannedInput {
  std::string_view key;        // with its prefix
  std::uint32_t key_skip = 0;  // bytes of the prefix
  std::uint32_t source = 0;    // index of the source
  std::uint64_t size = 0;
  std::uint64_t sequence = 0;
  std::int64_t label = 0;     // index into the classes, or the number; 0 for kList and kFloat
  std::string_view metadata;  // as it will stand in the record, the typed label included; or empty
  std::string_view locator;
  std::string_view bad;
  ErrorCode bad_code = ErrorCode::kBadInput;

  std::string_view SourceKey() const { return key.substr(key_skip); }
};

// Takes what a scan finds.
class InputSink {
 public:
  virtual ~InputSink() = default;
  // May be called from any number of threads at once. Copies what it needs. Throws (a label of another kind than those
  // before, a class that is not among the pinned ones, ...): the source lets it pass.
  virtual void Add(const FoundInput& input) = 0;
  // For sources that are streamed: whether the bytes of the input with this key are wanted for the sample that codecs
  // are chosen by; then they are handed over before its Add().
  virtual bool WantsBytes(std::string_view key) = 0;
  virtual void Sample(std::string_view key, Bytes bytes) = 0;
  // Names of classes in an order that must be kept (a dataset's), or that may have no input (empty class folders).
  // `keep_order`: numbers are those of this list.
  virtual void AddClasses(const std::vector<std::string>& names, bool keep_order) = 0;
  virtual void AddIgnored(std::uint64_t files) = 0;  // neither candidates nor folders, or hidden
  virtual void Warn(const std::string& one_line) = 0;
};

// What the system refuses to every input, not to this one (no descriptors, no memory): ends the run and is never
// counted against an input.
struct OutOfResources {
  int error;          // errno
  const char* doing;  // "open"
};

// One source. Scan() is called at most once, by one thread, before any Read(); a run that goes on with an existing plan
// never calls it, so locators say all that reading needs.
class Source {
 public:
  virtual ~Source() = default;

  virtual SourceKind kind() const = 0;

  // Runs on the threads of the calling task arena where that helps; what it finds does not depend on their number nor
  // on the disk's order. Looks at `stop` often and throws Interrupted. Throws Error: kIo, kBadInput (an unreadable line
  // with its number, a cut archive, a sample in several places), kInvalidArgument.
  virtual void Scan(const std::atomic<bool>* stop, InputSink& sink) = 0;

  // True: inputs can only be read in ascending order of `sequence`, by one thread at a time (a compressed tar). Reading
  // an earlier one starts over.
  virtual bool IsStream() const = 0;

  // Fills to[0, input.size). Any thread, unless IsStream(). Throws Error with kBadInput (vanished; "the file changed
  // while it was being packed" where the size is not input.size any more) or kIo, and OutOfResources.
  virtual void Read(const PlannedInput& input, std::byte* to) = 0;

  // Whether the input is still as planned, as far as that shows without reading it (its size). Any thread.
  virtual bool IsAsPlanned(const PlannedInput& input) = 0;

  // For messages and the ledger: a path as the user gave it ("photos/cat/1.jpg", "in.tar: cat/1.jpg", "list.csv:
  // photos/1.jpg").
  virtual std::string Describe(const PlannedInput& input) const = 0;
};

// The sources of a request, in its order, each of the kind asked for or found out (--from auto: a folder with
// dataset.json is a dataset, another folder class folders; files by name and first bytes). Throws Error with kNotFound,
// kIo, kInvalidArgument. A folder whose files are archives or lists is kInvalidArgument with the advice to name the
// files.
std::vector<std::unique_ptr<Source>> OpenSources(const PackOptions& options);

// One each, in files of their own: source_folder.cc, source_list.cc (CSV and JSON lines), source_tar.cc, source_zip.cc,
// source_tfrecord.cc, source_dataset.cc, source_arrays.cc (HDF5). `path` is as the user gave it.
std::unique_ptr<Source> OpenFolderSource(const std::filesystem::path& path);
std::unique_ptr<Source> OpenListSource(const std::filesystem::path& path, SourceKind kind, const PackOptions& options);
std::unique_ptr<Source> OpenTarSource(const std::filesystem::path& path);
std::unique_ptr<Source> OpenZipSource(const std::filesystem::path& path);
std::unique_ptr<Source> OpenTfrecordSource(const std::filesystem::path& path, const PackOptions& options);
std::unique_ptr<Source> OpenDatasetSource(const std::filesystem::path& path);
std::unique_ptr<Source> OpenArraysSource(
    const std::filesystem::path& path);  // without HDF5: Error with kUnsupported that says so

// Whether the name's extension is that of a picture, in any letter case.
bool IsCandidateName(std::string_view name);

}  // namespace shardpack

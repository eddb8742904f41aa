// HDF5 files that hold a data set as arrays: `images` and `labels`, perhaps the names of classes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "shardpack/record.h"

namespace shardpack {

// `images` holds one of
//   [N, height, width], [N, height, width, C] or [N, C, height, width], C 1, 3 or 4: 8 or 16-bit unsigned samples;
//   [N] byte arrays of any length each (vlen of uint8), or opaque ones of one length: image files as they are;
// `labels` [N] or [N, 1] whole or fractional numbers; `classes` or `class_names`, where it is there, the names of the
// classes that whole labels count.
//
// Nothing outside of the file is followed: no links but hard ones, no virtual datasets, no external storage. libhdf5 is
// called under one lock and prints nothing; arrays that lie in the file as they are, are read without it. Const members
// from any thread. Throws Error: kNotFound, kIo, kCorruption, kUnsupported (shapes and types other than those, filters
// that this libhdf5 lacks: by name).
class ArrayFile {
 public:
  static ArrayFile Open(const std::filesystem::path& path);
  ArrayFile(ArrayFile&&) noexcept;
  ArrayFile& operator=(ArrayFile&&) noexcept;
  ~ArrayFile();

  std::uint64_t size() const noexcept;  // number of images

  // Of all images where they are samples. holds_files: they are image files, and the rest is 0.
  struct Form {
    bool holds_files = false;
    std::uint32_t width = 0, height = 0;
    std::uint8_t channels = 0, bit_depth = 0;
    bool channels_first = false;
    std::uint64_t image_bytes = 0;  // of one image's samples; of opaque arrays their length
  };
  const Form& form() const noexcept;
  bool has_fractional_labels() const noexcept;
  const std::vector<std::string>& classes() const noexcept;  // none: labels are numbers

  // Preconditions: first + count <= size(); labels of the kind that the file has. Throws also kBadInput: a whole number
  // of more than 63 bits.
  void ReadLabels(std::uint64_t first, std::uint64_t count, std::vector<std::int64_t>& out) const;
  void ReadLabels(std::uint64_t first, std::uint64_t count, std::vector<double>& out) const;

  // The samples of an image, rows after rows, channels together, little endian. Precondition: !form().holds_files.
  void ReadSamples(std::uint64_t index, std::vector<std::byte>& out) const;
  // The image file. Precondition: form().holds_files.
  void ReadImageFile(std::uint64_t index, std::vector<std::byte>& out) const;

 private:
  struct Impl;
  explicit ArrayFile(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shardpack

// What the datasets of an array file may be, checked before anything is read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libshard/hdf5/array_file.h"
#include "libshard/hdf5/hdf5_call.h"

namespace shardpack::hdf5 {

// A dataset with what is known of it. All functions are called within a session.
struct OpenArray {
  Array array;
  Type type;
  std::vector<hsize_t> shape;
};

// Whether the file has a link of this name at its top.
bool Has(const File& file, const char* name);

// Throws Error with kUnsupported: no such dataset (naming those that are there), one outside of the file, filters that
// are missing, chunks of more than 1 GiB.
OpenArray OpenNamed(const File& file, const std::filesystem::path& path, const char* name);

ArrayFile::Form FormOfImages(const OpenArray& images, const std::filesystem::path& path);
// Whether labels are fractional numbers.
bool CheckLabels(const OpenArray& labels, std::uint64_t images, const std::filesystem::path& path);
std::vector<std::string> ReadStrings(const OpenArray& strings, const std::filesystem::path& path, const char* name);

// "[60000, 28, 28]"
std::string ShapeText(const std::vector<hsize_t>& shape);

}  // namespace shardpack::hdf5

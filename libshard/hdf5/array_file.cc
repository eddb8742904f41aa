#include "libshard/hdf5/array_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "libshard/hdf5/array_format.h"
#include "libshard/hdf5/hdf5_call.h"
#include "libshard/store/unique_fd.h"

namespace shardpack {
namespace {

using hdf5::Checked;
using hdf5::Session;

constexpr std::uint64_t kLargestImageFile = std::numeric_limits<std::uint32_t>::max();
// Chunks of several images are kept decompressed while their images are read one after the other.
constexpr std::size_t kCacheBytes = 64 << 20, kCacheSlots = 12421;

bool IsHdf5(const std::filesystem::path& path) {
  // H5Fis_hdf5 says no more of a file that is not there than of one that is none.
  return H5Fis_hdf5(path.c_str()) > 0;
}

// Hands out what a record can hold, so that a length in a damaged file does not take all memory.
void* TakeMemory(std::size_t size, void*) { return size > kLargestImageFile ? nullptr : std::malloc(size); }
void GiveMemory(void* memory, void*) { std::free(memory); }

void ReadAt(int fd, std::uint64_t offset, std::byte* to, std::uint64_t size, const std::string& path) {
  while (size > 0) {
    const ssize_t n = pread(fd, to, std::min<std::uint64_t>(size, 1u << 30), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) ThrowSystemError(errno, "read", path);
    if (n == 0) throw Error(ErrorCode::kCorruption, Location{path, {}, offset}, "the file became shorter");
    to += n;
    offset += static_cast<std::uint64_t>(n);
    size -= static_cast<std::uint64_t>(n);
  }
}

}  // namespace

struct ArrayFile::Impl {
  ~Impl() {
    const Session session;
    images = {};
    labels = {};
    file.Reset();
  }

  hdf5::Space SelectRows(const hdf5::OpenArray& from, std::uint64_t first, std::uint64_t count) const;
  void FindPlainBytes();
  void ReadRow(std::uint64_t index, hid_t type, void* to, hid_t transfer, const char* doing) const;
  template <typename Number>
  void ReadNumbers(std::uint64_t first, std::uint64_t count, hid_t type, std::vector<Number>& out) const;

  std::filesystem::path path;
  hdf5::File file;
  hdf5::OpenArray images, labels;
  Form form;
  bool fractional = false, unsigned_labels = false;
  std::vector<std::string> classes;
  UniqueFd plain;  // open where samples lie in the file one after the other
  std::uint64_t plain_offset = 0;
};

hdf5::Space ArrayFile::Impl::SelectRows(const hdf5::OpenArray& from, std::uint64_t first, std::uint64_t count) const {
  hdf5::Space space(Checked(H5Dget_space(from.array.get()), path, "look at a shape"));
  std::vector<hsize_t> start(from.shape.size(), 0), extent = from.shape;
  start[0] = first;
  extent[0] = count;
  Checked(H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr, extent.data(), nullptr), path,
          "select images");
  return space;
}

// Samples that are neither chunked nor compressed nor of another byte order need no libhdf5, and so no lock.
void ArrayFile::Impl::FindPlainBytes() {
  if (form.holds_files || size_t{images.shape[0]} == 0) return;
  const hdf5::Properties properties(Checked(H5Dget_create_plist(images.array.get()), path, "look at a dataset"));
  if (H5Pget_layout(properties.get()) != H5D_CONTIGUOUS) return;
  if (form.bit_depth > 8 && H5Tget_order(images.type.get()) != H5T_ORDER_LE) return;
  if (H5Tget_precision(images.type.get()) != form.bit_depth || H5Tget_offset(images.type.get()) != 0) return;
  const haddr_t offset = H5Dget_offset(images.array.get());
  if (offset == HADDR_UNDEF) return;  // never written: all samples are the fill value
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status;
  if (!fd || fstat(fd.get(), &status) != 0) ThrowSystemError(errno, "open", path.native());
  const auto bytes = static_cast<std::uint64_t>(status.st_size);
  if (offset > bytes || images.shape[0] > (bytes - offset) / form.image_bytes) {
    throw Error(ErrorCode::kCorruption, Location{path.native(), {}, {}}, "\"images\" leave the file: it is cut off");
  }
  plain = std::move(fd);
  plain_offset = offset;
}

ArrayFile ArrayFile::Open(const std::filesystem::path& path) {
  const int access = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (access < 0) ThrowSystemError(errno, "open", path.native());
  close(access);
  auto impl = std::make_unique<Impl>();
  Impl& self = *impl;
  self.path = path;
  const Session session;
  if (!IsHdf5(path)) throw Error(ErrorCode::kCorruption, Location{path.native(), {}, {}}, "is not an HDF5 file");
  const hdf5::Properties properties(Checked(H5Pcreate(H5P_FILE_ACCESS), path, "prepare opening"));
#if H5_VERSION_GE(1, 10, 7)
  H5Pset_file_locking(properties.get(), true, true);  // where the file system knows no locks, none is missed
#endif
  H5Pset_cache(properties.get(), 0, kCacheSlots, kCacheBytes, 1.0);
  self.file = hdf5::File(H5Fopen(path.c_str(), H5F_ACC_RDONLY, properties.get()));
  if (!self.file) hdf5::Throw(path, "open the HDF5 file");
  self.images = hdf5::OpenNamed(self.file, path, "images");
  self.form = hdf5::FormOfImages(self.images, path);
  self.labels = hdf5::OpenNamed(self.file, path, "labels");
  self.fractional = hdf5::CheckLabels(self.labels, self.images.shape[0], path);
  self.unsigned_labels = !self.fractional && H5Tget_sign(self.labels.type.get()) == H5T_SGN_NONE;
  for (const char* name : {"classes", "class_names"}) {
    if (self.fractional || !self.classes.empty() || !hdf5::Has(self.file, name)) continue;
    self.classes = hdf5::ReadStrings(hdf5::OpenNamed(self.file, path, name), path, name);
  }
  self.FindPlainBytes();
  return ArrayFile(std::move(impl));
}

ArrayFile::ArrayFile(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
ArrayFile::ArrayFile(ArrayFile&&) noexcept = default;
ArrayFile& ArrayFile::operator=(ArrayFile&&) noexcept = default;
ArrayFile::~ArrayFile() = default;

std::uint64_t ArrayFile::size() const noexcept { return impl_->images.shape[0]; }
const ArrayFile::Form& ArrayFile::form() const noexcept { return impl_->form; }
bool ArrayFile::has_fractional_labels() const noexcept { return impl_->fractional; }
const std::vector<std::string>& ArrayFile::classes() const noexcept { return impl_->classes; }

template <typename Number>
void ArrayFile::Impl::ReadNumbers(std::uint64_t first, std::uint64_t count, hid_t type,
                                  std::vector<Number>& out) const {
  out.resize(count);
  if (count == 0) return;
  const hdf5::Space from = SelectRows(labels, first, count);
  const hsize_t extent = count;
  const hdf5::Space to(Checked(H5Screate_simple(1, &extent, nullptr), path, "prepare reading"));
  Checked(H5Dread(labels.array.get(), type, to.get(), from.get(), H5P_DEFAULT, out.data()), path, "read labels");
}

void ArrayFile::ReadLabels(std::uint64_t first, std::uint64_t count, std::vector<std::int64_t>& out) const {
  assert(!impl_->fractional && first + count <= size());
  const Session session;
  if (!impl_->unsigned_labels) {
    impl_->ReadNumbers(first, count, H5T_NATIVE_INT64, out);
    return;
  }
  // libhdf5 would cut what does not fit to the largest number.
  std::vector<std::uint64_t> numbers;
  impl_->ReadNumbers(first, count, H5T_NATIVE_UINT64, numbers);
  out.resize(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    if (numbers[i] > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      throw Error(ErrorCode::kBadInput, Location{impl_->path.native(), {}, {}},
                  "the label " + std::to_string(numbers[i]) + " of image " + std::to_string(first + i) +
                      " does not fit into 64 bits with a sign");
    }
    out[i] = static_cast<std::int64_t>(numbers[i]);
  }
}

void ArrayFile::ReadLabels(std::uint64_t first, std::uint64_t count, std::vector<double>& out) const {
  assert(impl_->fractional && first + count <= size());
  const Session session;
  impl_->ReadNumbers(first, count, H5T_NATIVE_DOUBLE, out);
}

// One element of `images` along its first dimension.
void ArrayFile::Impl::ReadRow(std::uint64_t index, hid_t type, void* to, hid_t transfer, const char* doing) const {
  const hdf5::Space from = SelectRows(images, index, 1);
  std::vector<hsize_t> extent = images.shape;
  extent[0] = 1;
  const hdf5::Space memory(
      Checked(H5Screate_simple(static_cast<int>(extent.size()), extent.data(), nullptr), path, "prepare reading"));
  Checked(H5Dread(images.array.get(), type, memory.get(), from.get(), transfer, to), path, doing);
}

namespace {

// Channels after one another become pixels.
void Interleave(const ArrayFile::Form& form, std::vector<std::byte>& samples) {
  const std::size_t sample_bytes = form.bit_depth / 8u, channels = form.channels;
  const std::size_t plane = std::size_t{form.width} * form.height;
  std::vector<std::byte> pixels(samples.size());
  for (std::size_t c = 0; c < channels; ++c) {
    for (std::size_t p = 0; p < plane; ++p) {
      std::memcpy(&pixels[(p * channels + c) * sample_bytes], &samples[(c * plane + p) * sample_bytes], sample_bytes);
    }
  }
  samples.swap(pixels);
}

}  // namespace

void ArrayFile::ReadSamples(std::uint64_t index, std::vector<std::byte>& out) const {
  assert(!impl_->form.holds_files && index < size());
  const Form& form = impl_->form;
  out.resize(form.image_bytes);
  if (impl_->plain) {
    ReadAt(impl_->plain.get(), impl_->plain_offset + index * form.image_bytes, out.data(), out.size(),
           impl_->path.native());
  } else {
    const Session session;
    impl_->ReadRow(index, form.bit_depth > 8 ? H5T_STD_U16LE : H5T_NATIVE_UINT8, out.data(), H5P_DEFAULT,
                   "read an image");
  }
  if (form.channels_first && form.channels > 1) Interleave(form, out);
}

void ArrayFile::ReadImageFile(std::uint64_t index, std::vector<std::byte>& out) const {
  assert(impl_->form.holds_files && index < size());
  const Session session;
  if (impl_->form.image_bytes > 0) {
    out.resize(impl_->form.image_bytes);
    impl_->ReadRow(index, impl_->images.type.get(), out.data(), H5P_DEFAULT, "read an image");
    return;
  }
  const hdf5::Properties transfer(Checked(H5Pcreate(H5P_DATASET_XFER), impl_->path, "prepare reading"));
  Checked(H5Pset_vlen_mem_manager(transfer.get(), TakeMemory, nullptr, GiveMemory, nullptr), impl_->path,
          "prepare reading");
  hvl_t bytes{0, nullptr};
  impl_->ReadRow(index, impl_->images.type.get(), &bytes, transfer.get(), "read an image");
  const std::unique_ptr<void, void (*)(void*)> owner(bytes.p, std::free);
  out.resize(bytes.len);
  if (bytes.len > 0) std::memcpy(out.data(), bytes.p, bytes.len);
}

}  // namespace shardpack

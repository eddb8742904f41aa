#include "samples/train_ddp/raw_images.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "shardpack/error.h"
#include "shardpack/record.h"

namespace train_ddp {
namespace {

using shardpack::Error;
using shardpack::ErrorCode;
namespace fs = std::filesystem;

constexpr std::array kExtensions = {".jpg", ".jpeg", ".jpe",  ".jfif", ".png", ".webp", ".bmp",
                                    ".gif", ".tif",  ".tiff", ".pnm",  ".pbm", ".pgm",  ".ppm"};

bool IsImageName(const fs::path& path) {
  std::string extension = path.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return std::find(kExtensions.begin(), kExtensions.end(), extension) != kExtensions.end();
}

void ReadFile(const std::string& path, std::vector<std::byte>& out) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) shardpack::ThrowSystemError(errno, "open", path);
  struct stat info {};
  std::size_t done = 0;
  ssize_t got = fstat(fd, &info);
  if (got == 0) {
    out.resize(static_cast<std::size_t>(info.st_size));
    while (done < out.size() &&
           ((got = read(fd, out.data() + done, out.size() - done)) > 0 || (got < 0 && errno == EINTR))) {
      if (got > 0) done += static_cast<std::size_t>(got);
    }
  }
  const int error = errno;
  close(fd);
  if (got < 0) shardpack::ThrowSystemError(error, "read", path);
  out.resize(done);
}

void FlipRows(std::uint8_t* pixels, std::uint32_t width, std::uint32_t height) {
  for (std::uint32_t y = 0; y < height; ++y, pixels += std::size_t{3} * width) {
    for (std::uint32_t a = 0, b = width - 1; a < b; ++a, --b)
      std::swap_ranges(pixels + 3 * a, pixels + 3 * a + 3, pixels + 3 * b);
  }
}

}  // namespace

RawImages::RawImages(const fs::path& folder, shardpack::loader::Transform transform)
    : folder_(folder), transform_(std::move(transform)) {
  std::error_code error;
  fs::directory_iterator top(folder, error);
  if (error)
    throw Error(error == std::errc::no_such_file_or_directory ? ErrorCode::kNotFound : ErrorCode::kIo,
                {folder.string(), {}, {}}, error.message());
  for (const auto& entry : top) {
    if (entry.is_directory() && !entry.path().filename().string().starts_with('.'))
      classes_.push_back(entry.path().filename().string());
  }
  std::sort(classes_.begin(), classes_.end());
  for (std::size_t label = 0; label < classes_.size(); ++label) {
    for (fs::recursive_directory_iterator it(folder / classes_[label]), end; it != end; ++it) {
      const bool hidden = it->path().filename().string().starts_with('.');
      if (hidden && it->is_directory()) it.disable_recursion_pending();
      if (hidden || !IsImageName(it->path()) || !it->is_regular_file()) continue;
      files_.push_back({it->path().lexically_relative(folder).string(), static_cast<std::int64_t>(label)});
    }
  }
  std::sort(files_.begin(), files_.end(), [](const File& a, const File& b) { return a.name < b.name; });
  if (files_.empty()) throw Error(ErrorCode::kNotFound, {folder.string(), {}, {}}, "no images in class folders");

  if (transform_.kind == shardpack::loader::Transform::Kind::kNone) {
    ReadFile((folder_ / files_[0].name).string(), bytes_);
    const auto info = shardpack::ProbeImage(bytes_);
    transform_.width = info.width;
    transform_.height = info.height;
  }
  table_ = shardpack::loader::MakeNormaliseTable(transform_.mean, transform_.deviation);
}

std::string RawImages::Digest() const {
  std::string text;
  for (const File& file : files_) text += file.name + '\0';
  return shardpack::Xxh3_128(shardpack::AsBytes(text)).Hex();
}

void RawImages::LoadPixels(std::uint64_t i, std::uint64_t seed, std::uint64_t epoch, std::uint8_t* out) {
  const std::string path = (folder_ / files_[i].name).string();
  ReadFile(path, bytes_);
  try {
    decoder_.Decode(bytes_, image_);
  } catch (const Error& error) {
    throw Error(error.code(), {path, {}, {}}, error.reason());
  }
  shardpack::loader::Philox random(seed, epoch, i, 0);
  const auto g = transform_.Draw(image_.width, image_.height, random);
  if (transform_.kind == shardpack::loader::Transform::Kind::kNone &&
      (image_.width != transform_.width || image_.height != transform_.height)) {
    throw Error(ErrorCode::kInvalidArgument, {path, {}, {}},
                std::to_string(image_.width) + "x" + std::to_string(image_.height) +
                    " pixels, but the first image has " + std::to_string(transform_.width) + "x" +
                    std::to_string(transform_.height) + ": choose a --transform");
  }
  const std::size_t stride = std::size_t{3} * image_.width;
  const shardpack::PixelView crop{image_.pixels.data() + g.crop_y * stride + std::size_t{3} * g.crop_x, g.crop_width,
                                  g.crop_height, stride};
  resizer_.Resize(crop, g.resized_width, g.resized_height,
                  {g.window_x, g.window_y, transform_.width, transform_.height}, out);
  if (g.flip) FlipRows(out, transform_.width, transform_.height);
}

void RawImages::Load(std::uint64_t i, std::uint64_t seed, std::uint64_t epoch, std::uint8_t* out) {
  LoadPixels(i, seed, epoch, out);
}

void RawImages::Load(std::uint64_t i, std::uint64_t seed, std::uint64_t epoch, float* out) {
  const std::size_t plane = std::size_t{transform_.width} * transform_.height;
  pixels_.resize(3 * plane);
  LoadPixels(i, seed, epoch, pixels_.data());
  for (std::size_t p = 0; p < plane; ++p) {
    for (std::size_t c = 0; c < 3; ++c) out[c * plane + p] = table_.value[c][pixels_[3 * p + c]];
  }
}

}  // namespace train_ddp

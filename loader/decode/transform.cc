#include "shardpack/loader/transform.h"

#include <cassert>
#include <cmath>
#include <string>

#include "loader/decode/geometry.h"
#include "shardpack/error.h"

namespace shardpack::loader {
namespace {

constexpr double kMinScale = 0.08, kMaxScale = 1.0;
constexpr int kCropTries = 10;

Geometry WholePicture(std::uint32_t width, std::uint32_t height) {
  Geometry whole;
  whole.crop_width = whole.resized_width = width;
  whole.crop_height = whole.resized_height = height;
  return whole;
}

void DrawResizedCrop(std::uint32_t width, std::uint32_t height, Philox& random, Geometry& out) {
  static const double kLogMinRatio = std::log(3.0 / 4.0), kLogMaxRatio = std::log(4.0 / 3.0);
  for (int attempt = 0; attempt < kCropTries; ++attempt) {
    const double scale = kMinScale + random.Uniform() * (kMaxScale - kMinScale);
    const double aspect = std::exp(kLogMinRatio + random.Uniform() * (kLogMaxRatio - kLogMinRatio));
    if (const auto size = TryCrop(width, height, scale, aspect)) {
      out.crop_width = size->width;
      out.crop_height = size->height;
      out.crop_y = random.Below(height - size->height + 1);
      out.crop_x = random.Below(width - size->width + 1);
      return;
    }
  }
  const CropSize size = FallbackCrop(width, height);
  out.crop_width = size.width;
  out.crop_height = size.height;
  out.crop_x = (width - size.width) / 2;
  out.crop_y = (height - size.height) / 2;
}

bool DrawFlip(Philox& random) { return random.Next() >> 31 != 0; }

std::string Size(std::uint32_t width, std::uint32_t height) {
  return width == height ? std::to_string(width) : std::to_string(width) + "x" + std::to_string(height);
}

}  // namespace

Geometry Transform::Draw(std::uint32_t image_width, std::uint32_t image_height, Philox& random) const {
  assert(image_width > 0 && image_height > 0);
  Geometry out = WholePicture(image_width, image_height);
  if (kind == Kind::kNone) return out;
  if (kind == Kind::kTrain) {
    DrawResizedCrop(image_width, image_height, random, out);
    out.resized_width = width;
    out.resized_height = height;
    out.flip = DrawFlip(random);
    return out;
  }
  const CropSize resized = ResizedSize(image_width, image_height, resize);
  assert(resized.width >= width && resized.height >= height);
  out.resized_width = resized.width;
  out.resized_height = resized.height;
  if (kind == Kind::kEval) {
    out.window_x = CentreOffset(resized.width, width);
    out.window_y = CentreOffset(resized.height, height);
    return out;
  }
  out.window_y = random.Below(resized.height - height + 1);
  out.window_x = random.Below(resized.width - width + 1);
  out.flip = DrawFlip(random);
  return out;
}

std::string Transform::Describe() const {
  switch (kind) {
    case Kind::kNone:
      return "none";
    case Kind::kTrain:
      return "train " + Size(width, height);
    case Kind::kEval:
      return "eval " + std::to_string(resize) + " " + Size(width, height);
    case Kind::kClassic:
      return "classic " + std::to_string(resize) + " " + Size(width, height);
  }
  return "unknown";
}

Transform NoTransform() { return {}; }

Transform TrainTransform(std::uint32_t size) {
  Transform transform;
  transform.kind = Transform::Kind::kTrain;
  transform.width = transform.height = size;
  return transform;
}

Transform EvalTransform(std::uint32_t resize, std::uint32_t size) {
  Transform transform;
  transform.kind = Transform::Kind::kEval;
  transform.resize = resize;
  transform.width = transform.height = size;
  return transform;
}

Transform ClassicTransform(std::uint32_t resize, std::uint32_t size) {
  Transform transform = EvalTransform(resize, size);
  transform.kind = Transform::Kind::kClassic;
  return transform;
}

Transform TransformFromName(std::string_view name) {
  if (name == "none") return NoTransform();
  if (name == "train") return TrainTransform(224);
  if (name == "eval") return EvalTransform(256, 224);
  if (name == "classic") return ClassicTransform();
  throw Error(ErrorCode::kInvalidArgument,
              "\"" + Escaped(name) + "\" is no transform; there are none, train, eval and classic");
}

}  // namespace shardpack::loader

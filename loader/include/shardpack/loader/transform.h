// From an image to a picture of fixed size: what is cut, how it is resized, whether it is flipped.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "shardpack/loader/philox.h"

namespace shardpack::loader {

// What to do with one image, decided from its width and height before it is decoded: take `crop` of the upright
// picture, resize that to resized_width x resized_height (antialiased bilinear, see shardpack/resize.h), keep the
// window at (window_x, window_y) of the transform's output size, mirror it left to right where `flip`.
struct Geometry {
  std::uint32_t crop_x = 0, crop_y = 0, crop_width = 0, crop_height = 0;
  std::uint32_t resized_width = 0, resized_height = 0;
  std::uint32_t window_x = 0, window_y = 0;
  bool flip = false;
};

struct Transform {
  enum class Kind {
    kNone,     // as it is: all images must have the size of the dataset's first
    kTrain,    // RandomResizedCrop (scale 0.08 to 1, ratio 3/4 to 4/3, ten tries, torchvision's fallback), flip with
               // probability 1/2
    kEval,     // Resize of the shorter side, then the centre
    kClassic,  // Resize of the shorter side, random crop, flip with probability 1/2
  };
  Kind kind = Kind::kNone;
  std::uint32_t resize = 0;             // kEval, kClassic: the shorter side after resizing
  std::uint32_t width = 0, height = 0;  // of the output; 0 with kNone until the dataset is known

  // For float output: (pixel / 255 - mean) / deviation, in R, G, B.
  std::array<float, 3> mean = {0.485f, 0.456f, 0.406f};
  std::array<float, 3> deviation = {0.229f, 0.224f, 0.225f};

  // Precondition: image_width, image_height > 0. Shorter side and centre as in torchvision's PIL path: int(short * long
  // / short), round half to even of (size - crop) / 2. An image smaller than the crop after resizing cannot happen with
  // resize >= size.
  Geometry Draw(std::uint32_t image_width, std::uint32_t image_height, Philox& random) const;

  // For `batch --json`, logs and docs: "train 224", "eval 256 224".
  std::string Describe() const;
};

Transform NoTransform();
Transform TrainTransform(std::uint32_t size);                                      // "train"
Transform EvalTransform(std::uint32_t resize, std::uint32_t size);                 // "eval"
Transform ClassicTransform(std::uint32_t resize = 256, std::uint32_t size = 224);  // "classic"
// "none", "train", "eval", "classic" with sizes 224 and 256. Throws Error with kInvalidArgument.
Transform TransformFromName(std::string_view name);

}  // namespace shardpack::loader

// BMP, GIF and TIFF: headers and completeness are read here, pixels by GraphicsMagick.
//
// GraphicsMagick fills what a short file lacks with whatever it has, so each probe first walks over the file's
// structure and refuses one that is not all there.
#pragma once

#include <cstdint>

#include "libshard/image/codec.h"

namespace shardpack::image {

StoredInfo ProbeBmp(Bytes bytes);
StoredInfo ProbeGif(Bytes bytes);   // width and height of the canvas
StoredInfo ProbeTiff(Bytes bytes);  // of the first page

// BMPs of 16 bits a pixel: GraphicsMagick leaves their white at 247.
bool IsPackedBmp(Bytes bytes);
void DecodePackedBmp(Bytes bytes, const StoredInfo& info, std::uint8_t* pixels);  // after ProbeBmp()

// What surrounds the first frame of a GIF: its place on the canvas and the colour of the canvas there.
struct GifFrame {
  std::uint32_t x = 0, y = 0, width = 0, height = 0;
  std::uint8_t background[3] = {};
};
GifFrame FirstGifFrame(Bytes bytes);

// Fills `pixels` with the first frame or page. Any thread may call it.
void DecodeOther(Bytes bytes, const StoredInfo& info, std::uint8_t* pixels);

}  // namespace shardpack::image

// BMP, GIF and TIFF: headers and completeness are read here, pixels by GraphicsMagick.
//
// GraphicsMagick fills what a short file lacks with whatever it has, so each probe first walks over the file's
// structure and refuses one that is not all there.
#pragma once

#include <cstdint>
#include <vector>

#include "libshard/image/codec.h"
#include "shardpack/transcode.h"

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
  bool transparent = false;  // one of its colours, which then is the background too
};
GifFrame FirstGifFrame(Bytes bytes);

// Fills `pixels` with the first frame or page. Any thread may call it.
void DecodeOther(Bytes bytes, const StoredInfo& info, std::uint8_t* pixels);

// The same, with what 8-bit RGB leaves out: grey as one channel, alpha where something is not opaque, the 16 bits that
// TIFFs of more than 8 are read to.
void DecodeOther(Bytes bytes, const StoredInfo& info, Samples& out);

// The fourth bytes of a BMP's pixels, row by row from the top: empty where it has none, or where all are 0 or all 255.
std::vector<std::uint8_t> BmpAlpha(Bytes bytes);  // after ProbeBmp()
bool IsPlainBmp(Bytes bytes);                     // no masks that put the alpha elsewhere

// After ProbeTiff(): grey, RGB or a palette, perhaps with alpha, all samples of one size, in no lossy coding: what
// Samples can hold without loss.
bool IsPlainTiff(Bytes bytes);
bool IsGreyTiff(Bytes bytes);

}  // namespace shardpack::image

#pragma once
// What is made of a JPEG file's planes, compared with the rows of the libjpeg that is linked.

#include "jpeg_planes.h"

namespace trainer {

// Whether JpegPlanes and YccToBgr make of a picture of this sampling what the library itself makes
// of it, bit for bit: tried once per sampling, on a picture of noise. False for {0, 0}. Any thread.
bool PlanesEqualRows(const JpegSampling& sampling);

// What is tried, with `to_bgr` in the place of YccToBgr.
using YccConversion = void (*)(const uint8_t* y, const uint8_t* cb, const uint8_t* cr, int width,
                               uint8_t* blue, uint8_t* green, uint8_t* red);
bool ComparePlanes(const JpegSampling& sampling, YccConversion to_bgr);

}  // namespace trainer

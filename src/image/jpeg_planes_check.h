#pragma once
// What is made of a JPEG file's planes, compared with the rows of the libjpeg that is linked.

#include "jpeg_planes.h"

namespace trainer {

// Whether JpegPlanes and YccToBgr make of a picture of this sampling what the library itself makes
// of it, bit for bit: tried once per sampling, on a picture of noise. False for {0, 0}. Any thread.
bool PlanesEqualRows(const JpegSampling& sampling);

}  // namespace trainer

#pragma once
// JPEG files that something else than this processor decodes, many at once: a GPU.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "trainer/image/image.h"
#include "trainer/image/pixel_window.h"

namespace trainer {

// The form of a decoded picture.
struct PictureForm {
  int channels = 0, height = 0, width = 0;  // channels: 3 are blue, green, red
  size_t Bytes() const {
    return static_cast<size_t>(channels) * static_cast<size_t>(height) * static_cast<size_t>(width);
  }
};

// What DecodeImage would make of these bytes, where they are a JPEG file of the kind that every
// decoder knows: baseline, one scan, 8 bits, grey or YCbCr with chroma of full or half size,
// upright, not cut short. Else nothing.
std::optional<PictureForm> FormOfPlainJpeg(std::string_view bytes, Colors colors);

// What is wanted of a picture that stays on the device: windows of height x width, which lie inside
// it, each as (H, W, C), one behind the other.
struct PictureCuts {
  std::span<const PixelWindow> windows;
  int height = 0, width = 0;
  uint8_t* to = nullptr;  // memory of the device; null: the picture itself is wanted, on the host
};

struct JpegTask {
  std::string_view bytes;  // of a plain JPEG file; empty: nothing to do
  PictureForm form;
  PictureCuts cuts;
  // Written by the unit. False where it takes the file for damaged or cannot decode it, which is
  // then for DecodeImage to judge; what is at cuts.to is then anything.
  bool decoded = false;
  const uint8_t* pixels = nullptr;  // where it came to the host: (C, H, W), until the next Decode
};

// Used by one thread; what it makes of a file does not depend on the others. Its pixels are those
// of DecodeImage but for rounding.
class JpegUnit {
 public:
  virtual ~JpegUnit() = default;
  // Decodes tasks from the first on, as many as it has memory for, and at least one. Returns how
  // many it went through, when all that they wanted is there. They are of one number of channels;
  // all want cuts, of one size, or none does. Throws kResource and kUnavailable as its device does.
  virtual size_t Decode(std::span<JpegTask> tasks) = 0;
};

// A device that has such units.
class DecodesJpegs {
 public:
  virtual ~DecodesJpegs() = default;
  // Whether it was asked for them, and has them.
  virtual bool HasJpegUnits() const = 0;
  // Any thread. Must end before the device.
  virtual std::unique_ptr<JpegUnit> MakeJpegUnit() const = 0;
  // The device's memory for PictureCuts::to, which the host cannot touch. Any thread; must be given
  // back before the device ends. Throws kResource, saying how much there is not.
  virtual std::pmr::memory_resource& CutMemory() const = 0;
};

}  // namespace trainer

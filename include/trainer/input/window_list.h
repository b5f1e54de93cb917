#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/image/image.h"
#include "trainer/input/image_list.h"

namespace trainer {

// A box in pixels; the pixels (x1, y1) and (x2, y2) are inside.
struct Window {
  int32_t label = 0;
  float overlap = 0;  // with the true box, 0 to 1
  int x1 = 0, y1 = 0, x2 = 0, y2 = 0;
  size_t image = 0;  // index into WindowList::images
  int line = 0;      // counted from 1

  std::string BoxText() const;  // "x1 y1 x2 y2"
};

struct WindowList {
  std::vector<ListedImage> images;  // labels are unused
  std::vector<Window> windows;
};

// Reads R-CNN's list, which has blocks of
//   # index
//   path
//   channels
//   height
//   width
//   number of windows
//   class overlap x1 y1 x2 y2      (one line per window)
// The image file defines its size, so channels, height and width only have to be present. Throws
// kNoInput, kNoPermission, kIo; kData with the line for anything else and for a box that ends
// before it begins; kData for a list without windows.
WindowList ReadWindowList(const std::string& path);

struct WindowCrop {
  int size = 0;         // side of the result in pixels
  int context_pad = 0;  // pixels of surroundings on each side of the result
  bool square = false;  // widens the box to a square first
};

// The box `from` of the image is resized to `width` x `height` pixels at (left, top).
struct WindowRegion {
  Rect from;
  int left = 0, top = 0, width = 0, height = 0;
};

// Widens the box so that context_pad pixels are on each side after scaling: R-CNN, section 2 and
// appendix A (arXiv:1311.2524). A `mirror` result has the part left of the image on the right.
WindowRegion FitWindow(const Window& window, int image_height, int image_width,
                       const WindowCrop& crop, bool mirror);

}  // namespace trainer

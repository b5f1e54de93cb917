#pragma once
// The HTML page that shows what a net computes from one image.

#include <string>
#include <utility>
#include <vector>

#include "trainer/image/image.h"

namespace trainer {

// An image of 1 or 3 channels, and the lines of text below it.
struct PageImage {
  Image image;
  std::vector<std::string> caption;
};

// The parts of the page, in their order. Empty parts are left out.
struct InspectionPage {
  std::string title;
  std::vector<PageImage> input;                              // the image and its saliency
  std::string note;                                          // a sentence about them
  std::vector<std::pair<std::string, std::string>> answers;  // class and score, the best first
  std::vector<PageImage> filters, outputs;
};

// Returns an HTML file that loads no other file; it contains the images as PNG.
std::string ToHtml(const InspectionPage& page);

}  // namespace trainer

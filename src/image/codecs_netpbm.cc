// Source of the format: netpbm.sourceforge.net/doc/pgm.html and ppm.html.

#include <algorithm>
#include <utility>

#include "codecs.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

bool IsBlank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// Takes blanks, comments and a number of at most nine digits off the front; -1 without one.
int TakeNumber(std::string_view& bytes) {
  for (;;) {
    while (!bytes.empty() && IsBlank(bytes.front())) bytes.remove_prefix(1);
    if (bytes.empty() || bytes.front() != '#') break;
    bytes.remove_prefix(std::min(bytes.size(), bytes.find('\n')));
  }
  int value = -1;
  for (int digits = 0; digits < 9 && !bytes.empty(); ++digits, bytes.remove_prefix(1)) {
    if (bytes.front() < '0' || bytes.front() > '9') break;
    value = std::max(value, 0) * 10 + (bytes.front() - '0');
  }
  return value;
}

}  // namespace

void DecodeNetpbm(std::string_view bytes, ColorMode colors, Image* image) {
  const int channels = bytes[1] == '6' ? 3 : 1;
  bytes.remove_prefix(2);
  const int width = TakeNumber(bytes), height = TakeNumber(bytes), top = TakeNumber(bytes);
  if (top < 0 || bytes.empty() || !IsBlank(bytes.front())) {
    throw ImageError("is a damaged PGM or PPM file: its header is not 'P5' or 'P6' and 3 numbers");
  }
  bytes.remove_prefix(1);
  if (top != 255) {
    throw ImageError(Join("is a PGM or PPM file whose maximum value is ", top,
                          "; only 255 is supported: convert it"));
  }
  CheckSize(height, width);
  const size_t want = static_cast<size_t>(height) * width * channels;
  if (bytes.size() < want) {
    throw ImageError(Join("is a truncated PGM or PPM file: ", bytes.size(), " bytes, but ", width,
                          "x", height, " pixels need ", want));
  }
  std::vector<uint8_t> pixels(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(want));
  for (size_t i = 0; channels == 3 && i < want; i += 3) std::swap(pixels[i], pixels[i + 2]);
  FromInterleaved(pixels.data(), channels, height, width, colors, image);
}

}  // namespace trainer

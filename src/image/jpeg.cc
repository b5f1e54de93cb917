#include <turbojpeg.h>

#include <memory>
#include <utility>

#include "formats.h"
#include "jpeg_markers.h"
#include "trainer/base/text.h"

namespace trainer {
namespace {

constexpr int64_t kMaxScans = 100;  // progressive pictures have about ten

struct Close {
  void operator()(void* handle) const { tjDestroy(handle); }
};

// Refuses what would take memory or time on the header's word alone.
void CheckClaims(const JpegMarkers& jpeg, size_t bytes) {
  // A block of 8x8 takes a bit at least, and sampling may spread it over four times the area.
  constexpr size_t kPixelsPerByte = 8 * 64 * 8;
  if (jpeg.components == 0) throw BadImage("is a damaged JPEG file: it has no frame header");
  CheckSize(jpeg.height, jpeg.width);
  const auto pixels = static_cast<size_t>(jpeg.height) * static_cast<size_t>(jpeg.width);
  if (jpeg.huffman && pixels / kPixelsPerByte > bytes) {
    throw BadImage(Join("is a JPEG file that is cut short: ", bytes, " bytes cannot hold ",
                        jpeg.width, "x", jpeg.height, " pixels"));
  }
  if (jpeg.scans > kMaxScans || static_cast<int64_t>(pixels) > 16 * kMaxPixels / (jpeg.scans + 1)) {
    throw BadImage(Join("is a JPEG file of ", jpeg.scans, " scans for ", jpeg.width, "x",
                        jpeg.height, " pixels, more than any image needs; save it again"));
  }
}

// Adobe's CMYK is stored inverted: a channel of 255 is no ink.
void CmykToBgr(std::vector<uint8_t>* pixels) {
  uint8_t* out = pixels->data();
  for (const uint8_t* in = out; in != pixels->data() + pixels->size(); in += 4, out += 3) {
    const int black = in[3];
    const auto mix = [black](int ink) {
      return static_cast<uint8_t>(black - ((255 - ink) * black >> 8));
    };
    const uint8_t blue = mix(in[2]), green = mix(in[1]), red = mix(in[0]);
    out[0] = blue;
    out[1] = green;
    out[2] = red;
  }
}

// Turns a picture upright that was taken with Exif orientation `n`.
void TurnUpright(int n, Image* image) {
  if (n == 1) return;
  const Image from = *image;
  const bool swap = n >= 5, flip_x = n == 2 || n == 3 || n == 7 || n == 8;
  const bool flip_y = n == 3 || n == 4 || n == 6 || n == 7;
  if (swap) std::swap(image->height, image->width);
  uint8_t* out = image->pixels.data();
  for (int c = 0; c < from.channels; ++c) {
    const uint8_t* plane = from.pixels.data() + c * from.Plane();
    for (int y = 0; y < image->height; ++y) {
      for (int x = 0; x < image->width; ++x) {
        const int column = swap ? y : x, row = swap ? x : y;
        const int64_t in_row = flip_y ? from.height - 1 - row : row;
        *out++ = plane[in_row * from.width + (flip_x ? from.width - 1 - column : column)];
      }
    }
  }
}

}  // namespace

void DecodeJpeg(std::string_view bytes, Colors colors, Image* image) {
  const JpegMarkers jpeg = ReadJpegMarkers(bytes);
  CheckClaims(jpeg, bytes.size());
  const bool cmyk = jpeg.components == 4;
  if (cmyk && !jpeg.adobe) {
    throw BadImage(
        "is a CMYK JPEG file without Adobe's marker, so that its colours are unknown; convert it "
        "to RGB");
  }
  const bool gray = colors == Colors::kGray || (colors == Colors::kAsStored && jpeg.components < 3);
  const int format = cmyk ? TJPF_CMYK : gray ? TJPF_GRAY : TJPF_BGR;
  const int channels = cmyk ? 4 : gray ? 1 : 3;
  std::vector<uint8_t> pixels(static_cast<size_t>(jpeg.height) * jpeg.width * channels);
  const std::unique_ptr<void, Close> handle(tjInitDecompress());
  if (handle == nullptr) throw Error(ErrorCode::kResource, "cannot start the JPEG decoder");
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  if (tjDecompress2(handle.get(), data, bytes.size(), pixels.data(), jpeg.width, 0, jpeg.height,
                    format, TJFLAG_ACCURATEDCT | TJFLAG_STOPONWARNING | TJFLAG_LIMITSCANS) != 0) {
    throw BadImage(Join("is a damaged JPEG file: ", tjGetErrorStr2(handle.get())));
  }
  if (cmyk) CmykToBgr(&pixels);
  FromInterleaved(pixels.data(), cmyk ? 3 : channels, jpeg.height, jpeg.width, colors, image);
  if (colors != Colors::kAsStored) TurnUpright(jpeg.orientation, image);
}

}  // namespace trainer

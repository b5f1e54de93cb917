// Source of the format: TIFF 6.0 (Aldus, 1992); libtiff reads it.

#include "codecs.h"

#ifdef TRAINER_TIFF

#include <tiffio.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// The most bytes of a row or of a tile that are allocated because a header claims them.
constexpr tmsize_t kMostAtOnce = tmsize_t{1} << 28;

// The file in memory, as libtiff's calls see it.
struct TiffMemory {
  std::string_view bytes;
  toff_t at = 0;
  char problem[200] = {};  // the first error of the library

  static TiffMemory& Of(thandle_t handle) { return *static_cast<TiffMemory*>(handle); }
  static tmsize_t Read(thandle_t handle, void* to, tmsize_t count) {
    TiffMemory& file = Of(handle);
    const auto size = static_cast<toff_t>(file.bytes.size());
    const toff_t left = size - std::min(file.at, size);
    const toff_t got = std::min(static_cast<toff_t>(count), left);
    if (got > 0) std::memcpy(to, file.bytes.data() + file.at, static_cast<size_t>(got));
    file.at += got;
    return static_cast<tmsize_t>(got);
  }
  static tmsize_t Write(thandle_t, void*, tmsize_t) { return 0; }
  static toff_t Seek(thandle_t handle, toff_t offset, int whence) {
    TiffMemory& file = Of(handle);
    const auto size = static_cast<toff_t>(file.bytes.size());
    file.at = offset + (whence == SEEK_CUR ? file.at : whence == SEEK_END ? size : 0);
    return file.at;
  }
  static int Close(thandle_t) { return 0; }
  static toff_t Size(thandle_t handle) { return static_cast<toff_t>(Of(handle).bytes.size()); }

  static void OnError(thandle_t handle, const char*, const char* format, va_list values) {
    if (handle == nullptr || Of(handle).problem[0] != 0) return;
    std::vsnprintf(Of(handle).problem, sizeof problem, format, values);
  }
};

struct CloseTiff {
  void operator()(TIFF* tiff) const { TIFFClose(tiff); }
};

[[noreturn]] void FailTiff(const TiffMemory& file) {
  throw ImageError(Join("is a damaged TIFF file: ",
                        file.problem[0] != 0 ? EscapeControl(file.problem) : "it cannot be read"));
}

// The first page of a file.
class TiffPage {
 public:
  TiffPage(TIFF* tiff, const TiffMemory& file) : tiff_(tiff), file_(file) {
    uint32_t height = 0, width = 0;
    TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &height);
    TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &width);
    CheckSize(height, width);
    height_ = static_cast<int>(height);
    width_ = static_cast<int>(width);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_BITSPERSAMPLE, &bits_);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLESPERPIXEL, &samples_);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLEFORMAT, &format_);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_PLANARCONFIG, &planar_);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_ORIENTATION, &orientation_);
    TIFFGetField(tiff, TIFFTAG_PHOTOMETRIC, &photometric_);
  }

  int orientation() const { return orientation_ >= 1 && orientation_ <= 8 ? orientation_ : 1; }
  bool has_16() const { return bits_ == 16; }
  bool is_gray() const {
    return photometric_ == PHOTOMETRIC_MINISBLACK || photometric_ == PHOTOMETRIC_MINISWHITE;
  }

  // Decodes as `depth` says.
  void Read(ColorMode colors, BitDepth depth, Image* image) const {
    const bool is_integer = format_ == SAMPLEFORMAT_UINT || format_ == SAMPLEFORMAT_VOID;
    if (!is_integer || bits_ > 16) {
      throw ImageError(Join("is a TIFF file with ", bits_, "-bit ",
                            format_ == SAMPLEFORMAT_IEEEFP ? "floating-point" : "integer",
                            " numbers; only unsigned integers of up to 16 bits are supported: "
                            "convert it"));
    }
    const bool plain =
        (is_gray() && samples_ >= 1) || (photometric_ == PHOTOMETRIC_RGB && samples_ >= 3);
    if ((bits_ != 8 && bits_ != 16) || !plain) return ReadAsRgba(colors, image);
    const int channels = KeptChannels(colors);
    std::vector<uint8_t> numbers = ReadNumbers(channels);
    if (photometric_ == PHOTOMETRIC_MINISWHITE) {
      for (uint8_t& byte : numbers) byte = static_cast<uint8_t>(~byte);
    }
    if (has_16() && depth == BitDepth::kFloats) {
      return FromInterleaved16(numbers.data(), channels, height_, width_, colors, image);
    }
    if (has_16()) KeepUpperBytes(&numbers);
    FromInterleaved(numbers.data(), channels, height_, width_, colors, image);
  }

 private:
  // Grey, or blue, green, red; as stored also alpha, if it is the only other channel.
  int KeptChannels(ColorMode colors) const {
    if (colors == ColorMode::kAsStored && samples_ != 1 && samples_ != 3 &&
        (is_gray() || samples_ != 4)) {
      throw ImageError(Join("is a TIFF file with ", samples_,
                            " channels; set force_color or force_gray, or convert it"));
    }
    if (is_gray()) return 1;
    return colors == ColorMode::kAsStored ? samples_ : 3;
  }

  // Returns rows of `kept` interleaved numbers in the machine's byte order, blue before red.
  std::vector<uint8_t> ReadNumbers(int kept) const {
    const size_t number = bits_ / 8u;
    std::vector<uint8_t> all(static_cast<size_t>(height_) * static_cast<size_t>(width_) *
                             static_cast<size_t>(kept) * number);
    const bool separate = planar_ == PLANARCONFIG_SEPARATE && samples_ > 1;
    const int planes = separate ? kept : 1, step = separate ? 1 : samples_;
    for (int plane = 0; plane < planes; ++plane) {
      // Copies numbers of one row, which begin at column x.
      const auto store = [&](const uint8_t* row, int y, int x, int count) {
        for (int i = 0; i < count; ++i) {
          uint8_t* const pixel =
              all.data() + ((static_cast<size_t>(y) * static_cast<size_t>(width_)) +
                            static_cast<size_t>(x + i)) *
                               static_cast<size_t>(kept) * number;
          const uint8_t* const from = row + static_cast<size_t>(i) * step * number;
          for (int c = separate ? plane : 0; c < (separate ? plane + 1 : kept); ++c) {
            const int to = kept >= 3 && c < 3 ? 2 - c : c;
            std::memcpy(pixel + static_cast<size_t>(to) * number,
                        from + static_cast<size_t>(separate ? 0 : c) * number, number);
          }
        }
      };
      TIFFIsTiled(tiff_) != 0 ? ReadTiles(plane, step, number, store)
                              : ReadRows(plane, step, number, store);
    }
    return all;
  }

  template <class Store>
  void ReadRows(int plane, int step, size_t number, const Store& store) const {
    const tmsize_t bytes = TIFFScanlineSize(tiff_);
    const size_t needed = static_cast<size_t>(width_) * static_cast<size_t>(step) * number;
    if (bytes <= 0 || bytes > kMostAtOnce || static_cast<size_t>(bytes) < needed) FailTiff(file_);
    std::vector<uint8_t> row(static_cast<size_t>(bytes));
    for (int y = 0; y < height_; ++y) {
      if (TIFFReadScanline(tiff_, row.data(), static_cast<uint32_t>(y),
                           static_cast<uint16_t>(plane)) != 1) {
        FailTiff(file_);
      }
      store(row.data(), y, 0, width_);
    }
  }

  template <class Store>
  void ReadTiles(int plane, int step, size_t number, const Store& store) const {
    uint32_t tile_height = 0, tile_width = 0;
    TIFFGetField(tiff_, TIFFTAG_TILELENGTH, &tile_height);
    TIFFGetField(tiff_, TIFFTAG_TILEWIDTH, &tile_width);
    const tmsize_t bytes = TIFFTileSize(tiff_);
    const size_t row = static_cast<size_t>(tile_width) * static_cast<size_t>(step) * number;
    if (tile_height == 0 || tile_width == 0 || bytes <= 0 || bytes > kMostAtOnce ||
        row > static_cast<size_t>(bytes) / tile_height) {
      FailTiff(file_);
    }
    std::vector<uint8_t> tile(static_cast<size_t>(bytes));
    const auto height = static_cast<uint32_t>(height_), width = static_cast<uint32_t>(width_);
    for (uint32_t y = 0; y < height; y += tile_height) {
      for (uint32_t x = 0; x < width; x += tile_width) {
        if (TIFFReadTile(tiff_, tile.data(), x, y, 0, static_cast<uint16_t>(plane)) < 0) {
          FailTiff(file_);
        }
        for (uint32_t i = 0; i < std::min(tile_height, height - y); ++i) {
          store(tile.data() + i * row, static_cast<int>(y + i), static_cast<int>(x),
                static_cast<int>(std::min(tile_width, width - x)));
        }
      }
    }
  }

  static void KeepUpperBytes(std::vector<uint8_t>* numbers) {
    for (size_t i = 0; i < numbers->size() / 2; ++i) {
      uint16_t number = 0;
      std::memcpy(&number, numbers->data() + 2 * i, sizeof number);
      (*numbers)[i] = static_cast<uint8_t>(number >> 8);
    }
  }

  // Palettes, few-bit greys, CMYK and YCbCr, which the library converts to 8 bits.
  void ReadAsRgba(ColorMode colors, Image* image) const {
    char why[1024] = {};
    if (bits_ > 8 || TIFFRGBAImageOK(tiff_, why) != 1) {
      throw ImageError(Join("is a TIFF file of a kind that is not supported",
                            why[0] != 0 ? ": " + EscapeControl(why) : "", "; convert it to RGB"));
    }
    std::vector<uint32_t> raster(static_cast<size_t>(height_) * static_cast<size_t>(width_));
    TIFFSetField(tiff_, TIFFTAG_ORIENTATION, ORIENTATION_TOPLEFT);  // the caller turns the image
    if (TIFFReadRGBAImageOriented(tiff_, static_cast<uint32_t>(width_),
                                  static_cast<uint32_t>(height_), raster.data(),
                                  ORIENTATION_TOPLEFT, 1) != 1) {
      FailTiff(file_);
    }
    const int channels = is_gray() ? 1 : 3;
    std::vector<uint8_t> bytes;
    bytes.reserve(raster.size() * static_cast<size_t>(channels));
    for (const uint32_t pixel : raster) {
      if (channels == 3) {
        bytes.push_back(static_cast<uint8_t>(TIFFGetB(pixel)));
        bytes.push_back(static_cast<uint8_t>(TIFFGetG(pixel)));
      }
      bytes.push_back(static_cast<uint8_t>(TIFFGetR(pixel)));
    }
    FromInterleaved(bytes.data(), channels, height_, width_, colors, image);
  }

  TIFF* tiff_;
  const TiffMemory& file_;
  int height_ = 0, width_ = 0;
  uint16_t bits_ = 1, samples_ = 1, format_ = SAMPLEFORMAT_UINT, planar_ = PLANARCONFIG_CONTIG;
  uint16_t orientation_ = ORIENTATION_TOPLEFT, photometric_ = PHOTOMETRIC_MINISBLACK;
};

}  // namespace

DecodeNotes DecodeTiff(std::string_view bytes, ColorMode colors, BitDepth depth, Image* image) {
  static std::once_flag handlers;
  std::call_once(handlers, [] {
    TIFFSetWarningHandler(nullptr);  // of unknown tags, which many cameras and microscopes write
    TIFFSetErrorHandler(nullptr);
    TIFFSetErrorHandlerExt(TiffMemory::OnError);
  });
  TiffMemory file{bytes};
  const std::unique_ptr<TIFF, CloseTiff> tiff(
      TIFFClientOpen("image", "rm", &file, TiffMemory::Read, TiffMemory::Write, TiffMemory::Seek,
                     TiffMemory::Close, TiffMemory::Size, nullptr, nullptr));
  if (tiff == nullptr) FailTiff(file);
  const TiffPage page(tiff.get(), file);
  if (page.has_16() && colors == ColorMode::kAsStored && depth == BitDepth::kBytes) Fail16Bits();
  const bool more_pages = TIFFLastDirectory(tiff.get()) == 0;
  page.Read(colors, depth, image);
  if (colors != ColorMode::kAsStored) TurnUpright(page.orientation(), image);
  return {.lost_bits = page.has_16() && depth == BitDepth::kBytes, .more_pages = more_pages};
}

}  // namespace trainer

#else

namespace trainer {

DecodeNotes DecodeTiff(std::string_view, ColorMode, BitDepth, Image*) {
  throw ImageError(
      "is a TIFF file, but this program was built without libtiff; install libtiff-dev and build "
      "it again, or convert the file to PNG");
}

}  // namespace trainer

#endif

#include <png.h>

#include <bit>
#include <csetjmp>
#include <cstring>

#include "codecs.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// libpng reports errors by longjmp, so functions that call it have no objects with destructors.
class PngFile {
 public:
  explicit PngFile(std::string_view bytes) : rest_(bytes) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, OnProblem, OnProblem);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
  }
  ~PngFile() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngFile(const PngFile&) = delete;
  PngFile& operator=(const PngFile&) = delete;

  void ReadHeader() {
    if (info_ == nullptr) throw Error(ErrorCode::kResource, "cannot start the PNG decoder");
    if (!TryHeader()) Fail();
  }
  void ReadPixels(ColorMode colors, BitDepth depth) {
    if (!TryConvert(colors, depth)) Fail();
    pixels_.resize(png_get_rowbytes(png_, info_) * static_cast<size_t>(height()));
    rows_.resize(static_cast<size_t>(height()));
    for (size_t i = 0; i < rows_.size(); ++i) {
      rows_[i] = pixels_.data() + i * png_get_rowbytes(png_, info_);
    }
    if (!TryPixels()) Fail();
  }

  int64_t height() const { return png_get_image_height(png_, info_); }
  int64_t width() const { return png_get_image_width(png_, info_); }
  int depth() const { return png_get_bit_depth(png_, info_); }
  int channels() const { return png_get_channels(png_, info_); }
  const uint8_t* pixels() const { return pixels_.data(); }

 private:
  // Warnings too: of the chunks that are read, none is harmless.
  [[noreturn]] static void OnProblem(png_structp png, png_const_charp text) {
    auto* self = static_cast<PngFile*>(png_get_error_ptr(png));
    std::strncpy(self->problem_, text, sizeof self->problem_ - 1);
    png_longjmp(png, 1);
  }
  static void Read(png_structp png, png_bytep to, size_t count) {
    auto* self = static_cast<PngFile*>(png_get_io_ptr(png));
    if (self->rest_.size() < count) OnProblem(png, "it is truncated");
    std::memcpy(to, self->rest_.data(), count);
    self->rest_.remove_prefix(count);
  }
  [[noreturn]] void Fail() const { throw ImageError(Join("is a damaged PNG file: ", problem_)); }

  bool TryHeader() {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_read_fn(png_, this, Read);
    png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // CheckSize explains its limit
    // All but the chunks that pixels need: texts, profiles and gamma change nothing here.
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
    png_read_info(png_, info_);
    return true;
  }

  bool TryConvert(ColorMode colors, BitDepth depth) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    const int type = png_get_color_type(png_, info_);
    if (type == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png_);
    if (type == PNG_COLOR_TYPE_GRAY) png_set_expand_gray_1_2_4_to_8(png_);
    if (depth == BitDepth::kBytes) {
      png_set_strip_16(png_);
    } else if constexpr (std::endian::native == std::endian::little) {
      png_set_swap(png_);  // numbers of 16 bits
    }
    if (colors != ColorMode::kAsStored) {
      png_set_strip_alpha(png_);
    } else if (type == PNG_COLOR_TYPE_GRAY_ALPHA) {
      png_set_gray_to_rgb(png_);  // OpenCV knows no two channels
    } else if (type != PNG_COLOR_TYPE_GRAY && png_get_valid(png_, info_, PNG_INFO_tRNS) != 0) {
      png_set_tRNS_to_alpha(png_);
    }
    png_set_bgr(png_);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    return true;
  }

  bool TryPixels() {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_read_image(png_, rows_.data());
    png_read_end(png_, nullptr);
    return true;
  }

  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::string_view rest_;
  char problem_[128] = {};
  std::vector<uint8_t> pixels_;
  std::vector<png_bytep> rows_;
};

}  // namespace

DecodeNotes DecodePng(std::string_view bytes, ColorMode colors, BitDepth depth, Image* image) {
  constexpr int64_t kMostDeflated = 1032;  // bytes that one compressed byte can expand to
  PngFile png(bytes);
  png.ReadHeader();
  CheckSize(png.height(), png.width());
  const int64_t bits = png.height() * png.width() * png.channels() * png.depth();
  if (bits / 8 / kMostDeflated > static_cast<int64_t>(bytes.size())) {
    throw ImageError(Join("is a truncated PNG file: ", bytes.size(), " bytes are too few for ",
                          png.width(), "x", png.height(), " pixels"));
  }
  const bool has_16 = png.depth() == 16;
  if (has_16 && colors == ColorMode::kAsStored && depth == BitDepth::kBytes) Fail16Bits();
  png.ReadPixels(colors, depth);
  const auto put = has_16 && depth == BitDepth::kFloats ? FromInterleaved16 : FromInterleaved;
  put(png.pixels(), png.channels(), static_cast<int>(png.height()), static_cast<int>(png.width()),
      colors, image);
  return {.lost_bits = has_16 && depth == BitDepth::kBytes};
}

}  // namespace trainer

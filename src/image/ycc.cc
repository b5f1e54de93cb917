#include "ycc.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "trainer/base/each_cpu.h"

namespace trainer {
namespace {

// Compiled for each kind of processor; whole numbers alone, so that all give the same bits. The
// loops over the numbers of a block become vector instructions.
#define TRAINER_BYTES TRAINER_FOR_EACH_CPU("avx2")
#define TRAINER_INLINE __attribute__((always_inline)) inline

// Two neighbouring bytes as one number.
TRAINER_INLINE uint16_t Pair(uint16_t left, uint16_t right) {
  return static_cast<uint16_t>(std::endian::native == std::endian::little ? left | right << 8
                                                                          : left << 8 | right);
}

// Samples that stand for two columns each: (3 here + its neighbour + round) / 2^shift.
template <class T>
TRAINER_INLINE void SplitBlock(const T* __restrict in, int round_left, int round_right, int shift,
                               uint16_t* __restrict out) {
  for (int i = 0; i < kYccBlock; ++i) {
    const auto here = static_cast<uint16_t>(3 * in[i]);
    const auto left = static_cast<uint16_t>(here + in[i - 1] + round_left);
    const auto right = static_cast<uint16_t>(here + in[i + 1] + round_right);
    out[i] = Pair(static_cast<uint16_t>(left >> shift), static_cast<uint16_t>(right >> shift));
  }
}

TRAINER_INLINE void AddRowsBlock(const uint8_t* __restrict near, const uint8_t* __restrict far,
                                 uint16_t* __restrict columns) {
  for (int i = 0; i < kYccBlock; ++i) columns[i] = static_cast<uint16_t>(3 * near[i] + far[i]);
}

// In units of 2^-16, what is left of the factors beside whole numbers.
constexpr int16_t kRedOfCr = 26345;                                 // 1.402 - 1
constexpr int16_t kBlueOfCb = -14942;                               // 1.772 - 2
constexpr int16_t kGreenOfCb = -22554, kGreenOfCr = 65536 - 46802;  // -0.344, 1 - 0.714

// x * factor / 2^16, rounded, by the upper half of a product of 16 bits.
TRAINER_INLINE int16_t Scaled(int16_t x, int16_t factor) {
  const auto twice = static_cast<int16_t>(2 * x);
  const auto upper = static_cast<int16_t>(twice * factor >> 16);
  return static_cast<int16_t>((upper + 1) >> 1);
}

// The halves of a product.
TRAINER_INLINE int16_t Upper(int16_t x, int16_t factor) {
  return static_cast<int16_t>(x * factor >> 16);
}
TRAINER_INLINE uint16_t Lower(int16_t x, int16_t factor) {
  return static_cast<uint16_t>(static_cast<uint16_t>(x) * unsigned{static_cast<uint16_t>(factor)});
}

// x * x_factor / 2^16 + y * y_factor / 2^16, rounded, for even factors: the lower halves of the
// products are even, too, so that half their sum has room in 16 bits.
TRAINER_INLINE int16_t SumScaled(int16_t x, int16_t x_factor, int16_t y, int16_t y_factor) {
  const auto half_lower =
      static_cast<uint16_t>((Lower(x, x_factor) >> 1) + (Lower(y, y_factor) >> 1));
  const auto carry = static_cast<uint16_t>(static_cast<uint16_t>((half_lower >> 14) + 1) >> 1);
  return static_cast<int16_t>(Upper(x, x_factor) + Upper(y, y_factor) + carry);
}

TRAINER_INLINE uint8_t ToByte(int16_t value) {
  return static_cast<uint8_t>(value < 0 ? 0 : value > 255 ? 255 : value);
}

// Sums stay in 16 bits, of which vector instructions take most at once.
TRAINER_INLINE void ConvertBlock(const uint8_t* __restrict y, const uint8_t* __restrict cb,
                                 const uint8_t* __restrict cr, uint8_t* __restrict blue,
                                 uint8_t* __restrict green, uint8_t* __restrict red) {
  for (int i = 0; i < kYccBlock; ++i) {
    const int16_t luma = y[i];
    const auto b = static_cast<int16_t>(cb[i] - 128), r = static_cast<int16_t>(cr[i] - 128);
    const int16_t both = SumScaled(b, kGreenOfCb, r, kGreenOfCr);
    red[i] = ToByte(static_cast<int16_t>(luma + r + Scaled(r, kRedOfCr)));
    green[i] = ToByte(static_cast<int16_t>(luma - r + both));
    blue[i] = ToByte(static_cast<int16_t>(luma + 2 * b + Scaled(b, kBlueOfCb)));
  }
}

}  // namespace

TRAINER_BYTES
void UpsampleAcross(uint8_t* in, int count, uint16_t* out) {
  in[-1] = in[0];
  in[count] = in[count - 1];
  for (int x = 0; x < count; x += kYccBlock) SplitBlock(in + x, 1, 2, 2, out + x);
}

TRAINER_BYTES
void UpsampleBoth(const uint8_t* near, const uint8_t* far, int count, uint16_t* columns,
                  uint16_t* out) {
  for (int x = 0; x < count; x += kYccBlock) AddRowsBlock(near + x, far + x, columns + x);
  columns[-1] = columns[0];
  columns[count] = columns[count - 1];
  for (int x = 0; x < count; x += kYccBlock) SplitBlock(columns + x, 8, 7, 4, out + x);
}

TRAINER_BYTES
void YccToBgr(const uint8_t* y, const uint8_t* cb, const uint8_t* cr, int width, uint8_t* blue,
              uint8_t* green, uint8_t* red) {
  int x = 0;
  for (; x + kYccBlock <= width; x += kYccBlock) {
    ConvertBlock(y + x, cb + x, cr + x, blue + x, green + x, red + x);
  }
  if (x == width) return;
  uint8_t rest[3][kYccBlock];
  ConvertBlock(y + x, cb + x, cr + x, rest[0], rest[1], rest[2]);
  const auto bytes = static_cast<size_t>(width - x);
  std::memcpy(blue + x, rest[0], bytes);
  std::memcpy(green + x, rest[1], bytes);
  std::memcpy(red + x, rest[2], bytes);
}

}  // namespace trainer

#include "trainer/base/random/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78u;  // bit-reversed

// tables[k][b] is the effect of byte b followed by k zero bytes, so eight look-ups advance by eight
// bytes.
using Tables = std::array<std::array<uint32_t, 256>, 8>;

// Computes the tables at compile time: k = 0 from the polynomial, each further one from the one
// before.
constexpr Tables MakeTables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1u) != 0 ? kPolynomial : 0);
    tables[0][byte] = crc;
  }
  for (size_t k = 1; k < 8; ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8) ^ tables[0][before & 0xff];
    }
  }
  return tables;
}

constexpr Tables kTables = MakeTables();

#if defined(__x86_64__)
// Computes Crc32c with the instructions of SSE4.2, which the CPU must have.
__attribute__((target("sse4.2"))) uint32_t Crc32cHardware(const void* data, size_t bytes,
                                                          uint32_t previous) {
  const auto* at = static_cast<const unsigned char*>(data);
  uint64_t crc = ~previous;
  for (; bytes >= 8; at += 8, bytes -= 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    crc = _mm_crc32_u64(crc, word);
  }
  auto narrow = static_cast<uint32_t>(crc);
  for (; bytes > 0; ++at, --bytes) narrow = _mm_crc32_u8(narrow, *at);
  return ~narrow;
}

const bool kHasHardware = __builtin_cpu_supports("sse4.2") != 0;
#endif

}  // namespace

uint32_t Crc32cPortable(const void* data, size_t bytes, uint32_t previous) {
  const auto* at = static_cast<const unsigned char*>(data);
  uint32_t crc = ~previous;
  for (; bytes >= 8; at += 8, bytes -= 8) {
    const uint32_t low =
        crc ^ (at[0] | static_cast<uint32_t>(at[1]) << 8 | static_cast<uint32_t>(at[2]) << 16 |
               static_cast<uint32_t>(at[3]) << 24);
    crc = kTables[7][low & 0xff] ^ kTables[6][low >> 8 & 0xff] ^ kTables[5][low >> 16 & 0xff] ^
          kTables[4][low >> 24] ^ kTables[3][at[4]] ^ kTables[2][at[5]] ^ kTables[1][at[6]] ^
          kTables[0][at[7]];
  }
  for (; bytes > 0; ++at, --bytes) crc = (crc >> 8) ^ kTables[0][(crc ^ *at) & 0xff];
  return ~crc;
}

uint32_t Crc32c(const void* data, size_t bytes, uint32_t previous) {
#if defined(__x86_64__)
  if (kHasHardware) return Crc32cHardware(data, bytes, previous);
#endif
  return Crc32cPortable(data, bytes, previous);
}

std::string Crc32cDigits(std::string_view text) {
  return Join(std::hex, Crc32c(text.data(), text.size()));
}

}  // namespace trainer

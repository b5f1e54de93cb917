#pragma once
// cuRAND's device function from the header of this name, for the emulated GPU: ten rounds of
// Philox4x32 on the counter `c` with the key `k`, computed with 64-bit products.

#include <emulated_device_code.h>

namespace emulated_gpu {
// Counts the calls of curand_Philox4x32_10. One block runs at a time, so it needs no lock.
inline constinit uint64_t curand_calls = 0;
}  // namespace emulated_gpu

inline uint4 curand_Philox4x32_10(uint4 c, uint2 k) {
  ++emulated_gpu::curand_calls;
  for (unsigned round = 0; round < 10; ++round) {
    const unsigned long long wide = 0xD2511F53ull * c.x, other = 0xCD9E8D57ull * c.z;
    const unsigned key = k.x + round * 0x9E3779B9u, key2 = k.y + round * 0xBB67AE85u;
    c = make_uint4(static_cast<unsigned>(other >> 32) ^ c.y ^ key, static_cast<unsigned>(other),
                   static_cast<unsigned>(wide >> 32) ^ c.w ^ key2, static_cast<unsigned>(wide));
  }
  return c;
}

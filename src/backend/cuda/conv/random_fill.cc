#include "cuda/conv/random_fill.h"

#include "cuda/loops.h"

namespace trainer::cuda {
namespace {

// Sets element i to a number that a hash of i gives (the last steps of MurmurHash3).
template <class T>
struct RandomElement {
  T* to;
  HD void operator()(int64_t i) const {
    uint32_t bits = static_cast<uint32_t>(i) + 1;
    bits = (bits ^ (bits >> 16)) * 0x85ebca6bu;
    bits = (bits ^ (bits >> 13)) * 0xc2b2ae35u;
    bits ^= bits >> 16;
    Store(to[i], static_cast<float>(bits >> 8) * 0x1p-23f - 1.0f);
  }
};

}  // namespace

void FillWithRandom(const Device& device, DType type, size_t bytes, void* data) {
  DispatchDtype(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    Loops(device).ForEach(static_cast<int64_t>(bytes / sizeof(T)),
                          RandomElement<T>{static_cast<T*>(data)});
  });
}

}  // namespace trainer::cuda

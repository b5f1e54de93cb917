#include "cuda/conv/filter_order.h"

#include "cuda/loops.h"

namespace trainer::cuda {
namespace {

// Maps the index of an element in an array of shape (filters, a, b) to its index in one of shape
// (filters, b, a).
struct Swapped {
  uint32_t a, b;
  HD uint32_t operator()(uint32_t i) const {
    const uint32_t rest = i / b;
    return (rest / a * b + i % b) * a + rest % a;
  }
};

// Sets element i of the library's array.
template <class T>
struct Put {
  Swapped ours;
  const float* weight;
  T* library;
  HD void operator()(int64_t i) const { Store(library[i], weight[ours(static_cast<uint32_t>(i))]); }
};

// Adds to element i of our gradient.
template <class T>
struct AddGradient {
  Swapped theirs;
  const T* library;
  float* gradient;
  HD void operator()(int64_t i) const {
    gradient[i] += Load(library[theirs(static_cast<uint32_t>(i))]);
  }
};

// Returns the mapping for an array of shape (filters, first, second). If the library's order equals
// ours, it maps every index to itself.
Swapped Between(const FilterOrder& order, int64_t first, int64_t second) {
  if (order.channels_innermost) {
    return {static_cast<uint32_t>(first), static_cast<uint32_t>(second)};
  }
  return {1, static_cast<uint32_t>(first * second)};
}

}  // namespace

void PutFilter(const Device& device, const FilterOrder& order, const float* weight, void* library) {
  DispatchDtype(order.dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    Loops(device).ForEach(order.Count(), Put<T>{Between(order, order.taps, order.channels), weight,
                                                static_cast<T*>(library)});
  });
}

void AddFilterGradient(const Device& device, const FilterOrder& order, const void* library,
                       float* gradient) {
  DispatchDtype(order.dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    Loops(device).ForEach(order.Count(), AddGradient<T>{Between(order, order.channels, order.taps),
                                                        static_cast<const T*>(library), gradient});
  });
}

}  // namespace trainer::cuda

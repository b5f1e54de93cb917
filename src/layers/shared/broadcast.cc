#include "shared/broadcast.h"

#include <algorithm>
#include <vector>

#include "trainer/backend/loops/grouped_sums.h"
#include "trainer/backend/loops/map_channels.h"

namespace trainer {
namespace {

// Returns the axes of a shape from the innermost in memory outwards.
std::vector<int> MemoryAxes(const Shape& shape) {
  if (shape.IsImage()) return {1, 3, 2, 0};
  std::vector<int> axes;
  for (int axis = shape.Rank(); axis-- > 0;) axes.push_back(axis);
  return axes;
}

// Returns the step in memory along each axis of the small array; 0 for an axis of length 1, which
// repeats.
std::vector<int64_t> Strides(const Shape& small, bool is_value) {
  std::vector<int64_t> strides(static_cast<size_t>(small.Rank()));
  int64_t stride = 1;
  auto add = [&](int axis) {
    strides[static_cast<size_t>(axis)] = small[axis] == 1 ? 0 : stride;
    stride *= small[axis];
  };
  if (is_value) {
    for (const int axis : MemoryAxes(small)) add(axis);
  } else {
    for (int axis = small.Rank(); axis-- > 0;) add(axis);
  }
  return strides;
}

// Computes y = x * scale + shift for one row: length[0] neighbours of the large tensor.
template <class T>
struct ScaleShiftRow {
  Broadcast broadcast;
  const T* x;
  const float *scale, *shift;
  T* y;

  template <class Row>
  HD void operator()(const Row& row) const {
    const int64_t at = row.index * broadcast.length[0], p = broadcast.OfRow(row.index);
    const int64_t step = broadcast.stride[0];
    if (scale == nullptr) {
      row.ForEach([&](int64_t i) { Store(y[at + i], Load(x[at + i]) + shift[p + i * step]); });
    } else if (shift == nullptr) {
      row.ForEach([&](int64_t i) { Store(y[at + i], Load(x[at + i]) * scale[p + i * step]); });
    } else {
      row.ForEach([&](int64_t i) {
        Store(y[at + i], Load(x[at + i]) * scale[p + i * step] + shift[p + i * step]);
      });
    }
  }
};

// Used if the small array has one element: there is only one row then, so Map divides it among
// threads.
struct ScaleShiftAll {
  const float *scale, *shift;

  struct Numbers {
    float scale, shift;
    HD float operator()(float x) const { return x * scale + shift; }
  };
  HD Numbers Prepared() const {
    return {scale == nullptr ? 1.0f : *scale, shift == nullptr ? 0.0f : *shift};
  }
  HD float operator()(float x) const { return Prepared()(x); }
};

// Functors for MapRepeated that scale x, shift x, or do both. number(i) returns the value of array
// i for the element x.
struct TimesFirst {
  template <class Number>
  HD float operator()(const Number& number, float x) const {
    return x * number(0);
  }
};
struct PlusFirst {
  template <class Number>
  HD float operator()(const Number& number, float x) const {
    return x + number(0);
  }
};
struct TimesFirstPlusSecond {
  template <class Number>
  HD float operator()(const Number& number, float x) const {
    return x * number(0) + number(1);
  }
};

// Returns whether memory is (rows, small_count): the usual case, channels of an image.
bool IsPerChannel(const Broadcast& broadcast) {
  return broadcast.stride[0] == 1 && broadcast.length[0] == broadcast.small_count;
}

// Computes y = x * scale + shift; returns what MapRepeated does.
bool ScaleShiftRepeated(const Device& device, const Broadcast& broadcast, const ConstTensor& x,
                        const float* scale, const float* shift, const Tensor& y) {
  const auto digits = static_cast<size_t>(broadcast.digits);
  const std::span<const int64_t> length(broadcast.length, digits), stride(broadcast.stride, digits);
  if (scale == nullptr) return MapRepeated(device, PlusFirst{}, length, stride, {shift}, y, x);
  if (shift == nullptr) return MapRepeated(device, TimesFirst{}, length, stride, {scale}, y, x);
  return MapRepeated(device, TimesFirstPlusSecond{}, length, stride, {scale, shift}, y, x);
}

// Describes the positions of a small element's repetitions in memory. A group has `inner`
// repetitions, with a stride of `step`; the stride from one group to the next is `distance`.
struct Repetitions {
  int64_t inner, step, distance;
};

// Returns the groups of repetitions. At most two digits repeat, because the small array covers axes
// that follow one another. The repetitions of a single digit are one group if they are neighbours;
// otherwise each is a group, so that a GPU sums neighbouring small elements together.
Repetitions RepetitionsOf(const Broadcast& broadcast) {
  int64_t length[2] = {1, 1}, step[2] = {}, advance = 1;
  int count = 0;
  for (int d = 0; d < broadcast.digits && count < 2; ++d) {
    if (broadcast.stride[d] == 0) {
      length[count] = std::max<int64_t>(1, broadcast.length[d]);
      step[count++] = advance;
    }
    advance *= broadcast.length[d];
  }
  if (count == 1 && step[0] != 1) return {1, 0, step[0]};
  return {length[0], step[0], step[1]};
}

// Returns dy * x (or dy) at the repetitions of a small element: the channels of AddSums are the
// small elements. Places need neither divisions nor branches, which would keep a GPU from reading
// several terms ahead.
template <class T>
struct RepetitionTerms {
  Broadcast broadcast;
  int64_t step, distance;  // see Repetitions
  const T *dy, *x;

  HD auto OfChannel(int64_t small) const {
    const int64_t start = broadcast.PlaceOf(small);
    return [start, this](const auto& place) {
      const int64_t at = start + place.Outer() * distance + place.Inner() * step;
      return x == nullptr ? Load(dy[at]) : Load(dy[at]) * Load(x[at]);
    };
  }
};

}  // namespace

bool MakeBroadcast(const Shape& large, const Shape& small, int axis, bool is_value,
                   Broadcast* broadcast) {
  *broadcast = {};
  broadcast->small_count = small.Count();
  const std::vector<int64_t> strides = Strides(small, is_value);
  for (const int at : MemoryAxes(large)) {
    if (large[at] == 1) continue;
    const bool covered = at >= axis && at < axis + small.Rank();
    const int64_t stride = covered ? strides[static_cast<size_t>(at - axis)] : 0;
    const int last = broadcast->digits - 1;
    const bool merges =
        last >= 0 && (stride == 0 ? broadcast->stride[last] == 0
                                  : stride == broadcast->stride[last] * broadcast->length[last]);
    if (merges) {
      broadcast->length[last] *= large[at];
      continue;
    }
    if (broadcast->digits == Broadcast::kMaxDigits) return false;
    broadcast->length[broadcast->digits] = large[at];
    broadcast->stride[broadcast->digits++] = stride;
  }
  if (broadcast->digits == 0) broadcast->length[broadcast->digits++] = 1;
  return true;
}

void ScaleShift(const Device& device, const Broadcast& broadcast, const ConstTensor& x,
                const float* scale, const float* shift, const Tensor& y) {
  if (broadcast.small_count == 1) return Map(device, ScaleShiftAll{scale, shift}, y, x);
  if (ScaleShiftRepeated(device, broadcast, x, scale, shift, y)) return;
  DispatchDtype(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    MapRows(device, x.Count() / broadcast.length[0], broadcast.length[0],
            ScaleShiftRow<T>{broadcast, x.As<T>(), scale, shift, y.As<T>()});
  });
}

void ReduceBroadcast(const Device& device, const Broadcast& broadcast, const ConstTensor& dy,
                     const ConstTensor* x, float* to) {
  const int64_t repetitions = dy.Count() / broadcast.small_count;
  if (IsPerChannel(broadcast)) {
    return device.AddChannelSums({.outer = repetitions, .channels = broadcast.small_count}, dy, x,
                                 to);
  }
  DispatchDtype(dy.dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    const T* factor = x == nullptr ? nullptr : x->As<T>();
    const auto [inner, step, distance] = RepetitionsOf(broadcast);
    AddSums(device, {repetitions / inner, broadcast.small_count, inner},
            RepetitionTerms<T>{broadcast, step, distance, dy.As<T>(), factor}, to);
  });
}

}  // namespace trainer

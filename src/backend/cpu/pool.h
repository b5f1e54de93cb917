#pragma once
// What the fast pools share. They loop over the channels of NHWC in vectors and over rows in
// threads, and only overwrite: a backward row gathers from the windows that cover it, in the order
// of the windows, so that no two threads add to one place.

#include <algorithm>
#include <vector>

#include "cpu/lanes.h"
#include "trainer/backend/parallel_for.h"
#include "trainer/backend/pool.h"
#include "trainer/base/error.h"
#include "trainer/base/text.h"

namespace trainer::cpu {

// Along one axis, where a window lies: it starts at `start`, covers [begin, end) of the image, and
// counts `length` for an average.
struct Reach {
  int64_t start, begin, end, length;
};
// The windows [first, last) that may cover one input place.
struct Cover {
  int64_t first, last;
};

struct Axis {
  Axis(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t pad) : cover(in, {out, 0}) {
    for (int64_t o = 0; o < out; ++o) {
      const int64_t start = o * stride - pad, stop = std::min(start + kernel, in + pad);
      reach.push_back({start, std::max<int64_t>(start, 0), std::min(stop, in),
                       std::max<int64_t>(stop - start, 0)});
      for (int64_t i = reach.back().begin; i < reach.back().end; ++i) {
        cover[i] = {std::min(cover[i].first, o), o + 1};
      }
    }
  }

  std::vector<Reach> reach;
  std::vector<Cover> cover;
};

inline int64_t RowGrain(int64_t row) {
  return std::max<int64_t>(1, parallel_for_internal::kGrain / row);
}

class FastPool : public PoolPlan {
 public:
  explicit FastPool(const PoolDesc& d)
      : desc_(d),
        high_(d.in_h, d.out_h, d.kernel_h, d.stride_h, d.pad_h),
        wide_(d.in_w, d.out_w, d.kernel_w, d.stride_w, d.pad_w) {}

  std::string Implementation() const override { return "channel vectors"; }

 protected:
  void Expect(const ConstTensor& x, const ConstTensor& y, size_t workspace, size_t needed) const {
    if (x.shape == desc_.InShape() && y.shape == desc_.OutShape() && x.dtype == desc_.dtype &&
        y.dtype == desc_.dtype && workspace >= needed) {
      return;
    }
    throw Error(ErrorCode::kInternal,
                Join("pooling planned for ", desc_.InShape().ToString(), " ", NameOf(desc_.dtype),
                     " -> ", desc_.OutShape().ToString(), " with ", needed, " bytes got ",
                     x.shape.ToString(), " -> ", y.shape.ToString(), " with ", workspace));
  }

  // f(window place in y, row's reach, column's reach) for one row of windows.
  template <class F>
  TRAINER_INLINE void ForRow(int64_t row, F f) const {
    const Reach& h = high_.reach[row % desc_.out_h];
    for (int64_t ow = 0; ow < desc_.out_w; ++ow) f(row * desc_.out_w + ow, h, wide_.reach[ow]);
  }

  PoolDesc desc_;
  Axis high_, wide_;
};

std::unique_ptr<PoolPlan> MakeMaxPool(const PoolDesc& desc);
std::unique_ptr<PoolPlan> MakeAveragePool(const PoolDesc& desc);

}  // namespace trainer::cpu

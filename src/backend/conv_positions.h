#pragma once
// Index arithmetic for a convolution with any number of axes: the input and output elements that
// belong together, as offsets in memory.

#include "trainer/backend/primitives/conv.h"
#include "trainer/base/host_device.h"

namespace trainer {

// A ConvDesc in a form that device code can read. A position is the row-major index over the
// spatial axes, a tap the row-major index over the kernel's axes.
struct ConvPositions {
  static constexpr int kMaxAxes = Shape::kMaxAxes - 2;
  struct Axis {
    int64_t in, out, kernel, stride, pad, dilation;
  };

  explicit ConvPositions(const ConvDesc& desc)
      : batch(desc.batch),
        in_channels(desc.in_channels),
        out_channels(desc.out_channels),
        group_in(desc.in_channels / desc.group),
        group_out(desc.out_channels / desc.group),
        in_area(desc.InShape().Count(2)),
        out_area(desc.OutShape().Count(2)),
        taps(desc.WeightShape().Count(2)),
        axes(static_cast<int>(desc.in.size())) {
    const std::vector<int64_t> out = desc.Out();
    for (size_t a = 0; a < desc.in.size(); ++a) {
      axis[a] = {desc.in[a], out[a], desc.kernel[a], desc.stride[a], desc.pad[a], desc.dilation[a]};
    }
  }

  // Returns the input position that `tap` of the window at output position `out` reads, or -1
  // outside the input.
  HD int64_t Reads(int64_t out, int64_t tap) const {
    int64_t position = 0, step = 1;
    for (int a = axes - 1; a >= 0; --a) {
      const Axis& x = axis[a];
      const int64_t at = out % x.out * x.stride - x.pad + tap % x.kernel * x.dilation;
      if (at < 0 || at >= x.in) return -1;
      position += at * step;
      step *= x.in;
      out /= x.out;
      tap /= x.kernel;
    }
    return position;
  }

  // Returns the output position whose window reads input position `in` with `tap`, or -1 if there
  // is none.
  HD int64_t ReadBy(int64_t in, int64_t tap) const {
    int64_t position = 0, step = 1;
    for (int a = axes - 1; a >= 0; --a) {
      const Axis& x = axis[a];
      const int64_t start = in % x.in + x.pad - tap % x.kernel * x.dilation;
      if (start < 0 || start % x.stride != 0 || start / x.stride >= x.out) return -1;
      position += start / x.stride * step;
      step *= x.out;
      in /= x.in;
      tap /= x.kernel;
    }
    return position;
  }

  // Returns the offset in memory of the input's element in channel c of image n.
  HD int64_t InAt(int64_t n, int64_t c, int64_t position) const {
    return At(n, c, position, in_channels, in_area);
  }
  // Returns the offset in memory of the output's element in channel m of image n.
  HD int64_t OutAt(int64_t n, int64_t m, int64_t position) const {
    return At(n, m, position, out_channels, out_area);
  }
  // Returns the offset of the weight of output channel m, channel c within the group, and a tap.
  HD int64_t WeightAt(int64_t m, int64_t c, int64_t tap) const {
    return (m * group_in + c) * taps + tap;
  }
  // Returns the first input channel that output channel m reads.
  HD int64_t FirstRead(int64_t m) const { return m / group_out * group_in; }

  // Returns whether there are two spatial axes, so that the tensors are channels-last.
  HD bool IsImage() const { return axes == 2; }
  // Returns the offset in a tensor of `channels` channels with `area` positions each.
  HD int64_t At(int64_t n, int64_t c, int64_t position, int64_t channels, int64_t area) const {
    if (IsImage()) return (n * area + position) * channels + c;
    return (n * channels + c) * area + position;
  }

  int64_t batch, in_channels, out_channels, group_in, group_out, in_area, out_area, taps;
  int axes;
  Axis axis[kMaxAxes] = {};
};

}  // namespace trainer

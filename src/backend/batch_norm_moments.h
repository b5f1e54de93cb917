#pragma once
// The moments of a channel from the sums of its chunks: functors for JoinChunks, one for each
// device.

#include "trainer/backend/loops/pixel_chunks.h"
#include "trainer/tensor/dtype.h"

namespace trainer {

// Computes the mean and the variance of a channel from its chunks' deviations.
template <class T>
struct MomentsOfChunks {
  const T* x;
  const float* sums;  // result of SumPairs
  PixelChunks in;
  float *mean, *variance;

  // Moments of a part of the pixels; `squares` is the sum of squared distances from their mean.
  // Source: Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing sample
  // variances" (1979).
  struct Part {
    double count = 0, mean = 0, squares = 0;

    HD void Add(const Part& other) {
      if (other.count == 0) return;
      const double gap = other.mean - mean, both = count + other.count;
      squares += other.squares + gap * gap * count * other.count / both;
      mean += gap * other.count / both;
      count = both;
    }
  };
  // Returns the moments of channel c over chunk k.
  HD Part OfChunk(int64_t k, int64_t c) const {
    const int64_t channels = in.rows.length, begin = k * in.chunk_rows;
    const int64_t wish = begin + in.chunk_rows;
    const double n = static_cast<double>((wish < in.rows.count ? wish : in.rows.count) - begin);
    const double sum = sums[2 * k * channels + c], sum_squares = sums[(2 * k + 1) * channels + c];
    const double own = Load(x[in.rows.Start(begin) + c * in.rows.inner]) + sum / n;
    return {n, own, sum_squares - sum * sum / n};
  }
  // Stores the moments of channel c over all pixels.
  HD void Finish(int64_t c, const Part& all) const {
    mean[c] = static_cast<float>(all.mean);
    variance[c] = static_cast<float>(all.squares > 0 ? all.squares / all.count : 0);
  }
};

// The same on a GPU: all chunks' deviations are converted to distances from the channel's first
// element, so that joining two chunks needs no division. In double precision this loses nothing,
// since that element is as near to the mean as any other one.
template <class T>
struct MomentsFromOrigin {
  const T* x;
  const float* sums;  // result of SumPairs
  PixelChunks in;
  float *mean, *variance;

  struct Part {
    double count = 0, sum = 0, squares = 0;

    HD void Add(const Part& other) {
      count += other.count;
      sum += other.sum;
      squares += other.squares;
    }
  };
  // Returns the element of a pixel in channel c.
  HD double At(int64_t pixel, int64_t c) const {
    const int64_t inner = in.rows.inner;
    return Load(x[(inner == 1 ? pixel * in.rows.length : in.rows.Start(pixel)) + c * inner]);
  }
  // Returns the sums of channel c over chunk k.
  HD Part OfChunk(int64_t k, int64_t c) const {
    const int64_t channels = in.rows.length, begin = k * in.chunk_rows;
    const int64_t wish = begin + in.chunk_rows;
    const double n = static_cast<double>((wish < in.rows.count ? wish : in.rows.count) - begin);
    const double sum = sums[2 * k * channels + c], squares = sums[(2 * k + 1) * channels + c];
    const double gap = At(begin, c) - At(0, c);
    return {n, sum + n * gap, squares + gap * (2 * sum + n * gap)};
  }
  // Stores the moments of channel c over all pixels.
  HD void Finish(int64_t c, const Part& all) const {
    const double distance = all.sum / all.count;
    const double squares = all.squares - all.sum * distance;
    mean[c] = static_cast<float>(At(0, c) + distance);
    variance[c] = static_cast<float>(squares > 0 ? squares / all.count : 0);
  }
};

}  // namespace trainer

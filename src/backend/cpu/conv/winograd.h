#pragma once
// Convolutions of images by Winograd's minimal filtering with AVX-512 loops, for square kernels of
// 3 or 5, stride 1 and channels in whole vectors. Source: Lavin and Gray, "Fast Algorithms for
// Convolutional Neural Networks", arXiv:1509.09308, section 4; the points of evaluation are our
// own.
//
// Why it needs fewer products. Along one axis, take the 4 numbers d and the r taps w as
// coefficients of polynomials. Their product, the full convolution of d and w, has n = r + 3
// coefficients, and so its values at n points say all of it (Toom and Cook): evaluate d and w at
// the points, A d and G w; multiply there, n products in place of 4 r; and interpolate by a third
// matrix, B. What a layer computes, y_i = sum over k of x_(i + k) w_k for 4 outputs of a patch of n
// inputs, is the transpose of that linear map from d, and so costs the same n products:
//   y = A^T [(G w) * (B^T x)],  * element by element.
// The gradient dw_k = sum over i of x_(i + k) dy_i is the transpose by the other factor:
//   dw = G^T [(A dy) * (B^T x)].
// Along both axes, with * again element by element:
//   y = A^T [sum over c of (B^T x B) * (G w G^T)] A      per tile; x n x n, w r x r, y 4 x 4
//   dw = G^T [sum over tiles of (B^T x B) * (A dy A^T)] G
// The data gradient is the first of these over dy, with the taps reversed and inputs and outputs
// exchanged. The sums are one product of matrices per point, (tiles, C) times (C, M), with nothing
// but the transforms before and after it.
//
// Sizes. y is cut into tiles of 4 x 4, whose patches overlap. n^2 products replace (4 r)^2: 36 and
// 144 where r is 3, 64 and 400 where it is 5. Tiles of 2 x 2 would save but 2.25 times, those of
// 6 x 6 need 8 points where r is 3, and with every pair of points the error grows.
//
// Accuracy. The error comes of the powers of the points and of the differences between them, so
// they are small numbers far from each other: 0, +-5/8, +-3/2 and infinity where r is 3, with an
// error about half that of the usual 0, +-1, +-2; 0, +-1/2, +-1, +-2 and infinity where it is 5,
// with three times that error. All matrices but G are exact in float.
//
// Numbers at the n^2 points are stored as [n^2][channels / 16][tiles][16].

#include <cstdint>
#include <memory>

#include "conv_kernels.h"
#include "cpu/conv/tiles.h"
#include "trainer/backend/memory/scratch_layout.h"
#include "trainer/base/thread/thread_team.h"

namespace trainer::cpu {

inline constexpr int64_t kTile = 4;

// Patches of an image's channels; those of tile (i, j) begin at pixel (i * step - ph, j * step -
// pw). Pixels outside the image are 0.
struct Patches {
  int64_t h, w, pixel;  // the image, and floats from one pixel to the next
  int64_t step, ph, pw;
  int64_t down, across;
};
// One group's product y(n, oh, ow, m) = x (*) w. Of the data gradient, x is dy and y is dx.
struct WinogradShape {
  explicit WinogradShape(const ConvDesc& desc);
  WinogradShape Transposed() const;  // of the data gradient

  int64_t batch, group, c, m;  // channels per group
  int64_t h, w, oh, ow, ph, pw, kernel;
  int64_t points;        // n^2
  int64_t down, across;  // tiles per axis
  int64_t tiles;         // of all images

  Patches Input() const { return {h, w, group * c, kTile, ph, pw, down, across}; }
  Patches Output() const { return {oh, ow, group * m, kTile, 0, 0, down, across}; }

 private:
  void Tile();
};

// Floats from one point to the next: an odd number of cache lines, or all points of a tile would
// meet in one set of the caches. `floats` of a point, a multiple of 16.
inline int64_t PointStep(int64_t floats) { return (floats / kLanes | 1) * kLanes; }

// Tiles done at once. Fewer would read the numbers of the kernels more often from the third-level
// cache, more would not leave those of the tiles in the second.
inline int64_t BlockTiles(int64_t points) { return points == 36 ? 56 : 28; }

// Tiles [first, first + count) of all, and `channels` of them.
struct TileRange {
  int64_t first, count, channels;
};

// v = B^T x B for patches of n x n.
void InputToPoints(const float* x, const Patches& patches, int64_t kernel, const TileRange& range,
                   float* v);
// v = A dy A^T for patches of 4 x 4.
void GradientToPoints(const float* dy, const Patches& patches, int64_t kernel,
                      const TileRange& range, float* v);
// y = A^T v A, plus the bias (null for 0), then max(0, y) if `rectify`; NaN stays.
void PointsToOutput(const float* v, const TileRange& range, int64_t kernel, const float* bias,
                    bool rectify, const Patches& patches, float* y);

// Where tap (i, j) of input channel c and output channel m of the product is in a weight:
// at[c * in_step + m * out_step + i * kernel + j], or with the taps reversed.
struct KernelSteps {
  int64_t kernel, in_step, out_step;
  bool reversed;
};
// Kernels at the points, and their gradients, are stored in panels of up to 32 outputs:
// [n^2][panel][in][32 or 16].
inline constexpr int64_t kPanel = 2 * kLanes;
// u = G w G^T for inputs [c0, c1) of `in` and the 16 outputs from `m` on, of `out`.
void KernelsToPoints(const float* weight, const KernelSteps& steps, int64_t c0, int64_t c1,
                     int64_t in, int64_t m, int64_t out, float* u);
// dw += G^T s G for input c of `in` and the 16 outputs from m on, of `out`, where s is the sum of
// `parts` sums, each `part_step` floats after the one before.
void PointsToKernels(const float* sums, int64_t parts, int64_t part_step, const KernelSteps& steps,
                     int64_t c, int64_t in, int64_t m, int64_t out, float* dweight);

// y[t, m] = sum over c of v[t, c] * u[c, m] at one point, for the outputs of panels [begin, end).
void MultiplyPoint(const float* v, int64_t tiles, int64_t in, const float* u, int64_t out,
                   int64_t begin, int64_t end, float* y);
// s[c, m] += sum over t of v[t, c] * d[t, m] at one point, for the outputs of panels [begin, end),
// whose numbers alone are in d; = where `fresh`.
void AddPoint(const float* v, const float* d, int64_t tiles, int64_t in, int64_t out, int64_t begin,
              int64_t end, bool fresh, float* s);
// sums[m] += sum over pixels of dy[pixel, m], for channels in whole vectors.
void AddPixels(const float* dy, int64_t pixels, int64_t channels, float* sums);

// Why these loops cannot do it, or "": they need AVX-512, f32, and what the head of this file says.
std::string WinogradRefuses(const ConvDesc& desc);
// Why they are not the faster ones, or "". Where there are few tiles, transforming the kernels
// costs more than is saved; and tiles that reach far over the edge save nothing.
std::string WinogradLoses(const WinogradShape& product);
std::string WinogradWeightLoses(const WinogradShape& product);

// For descriptions that WinogradRefuses does not refuse.
std::unique_ptr<ConvForward> MakeWinogradForward(const ConvDesc& desc);
std::unique_ptr<ConvBackwardData> MakeWinogradBackwardData(const ConvDesc& desc);
std::unique_ptr<ConvBackwardWeight> MakeWinogradBackwardWeight(const ConvDesc& desc);

}  // namespace trainer::cpu

#pragma once
// Convolutions of images by Winograd's minimal filtering in AVX-512 or AVX2 loops, for square
// kernels of 3 or 5 and stride 1. Source: Lavin and Gray, "Fast Algorithms for Convolutional Neural
// Networks", arXiv:1509.09308, section 4; the evaluation points are our own.
//
// Why it needs fewer products: along one axis, take 4 numbers d and the r taps w as coefficients of
// polynomials. Their product, the full convolution of d and w, has n = r + 3 coefficients, so it is
// determined by its values at n points (Toom and Cook). Evaluate d and w at the points, A d and G
// w; multiply at each point, with n products instead of 4 r; and interpolate with a third matrix,
// B. A layer computes 4 outputs of a patch of n inputs, y_i = sum over k of x_(i + k) w_k. This is
// the transpose of the linear map from d, and so needs the same n products:
//   y = A^T [(G w) * (B^T x)],  * element by element.
// The gradient dw_k = sum over i of x_(i + k) dy_i is the transpose with respect to the other
// factor:
//   dw = G^T [(A dy) * (B^T x)].
// Along both axes, with * again element by element:
//   y = A^T [sum over c of (B^T x B) * (G w G^T)] A      per tile; x n x n, w r x r, y 4 x 4
//   dw = G^T [sum over tiles of (B^T x B) * (A dy A^T)] G
// The data gradient is the first formula over dy, with the taps reversed and inputs and outputs
// exchanged. The sums are one matrix product per point, (tiles, C) times (C, M); only the
// transforms come before and after it.
//
// Sizes: y is cut into tiles of 4 x 4, whose patches overlap. n^2 products replace (4 r)^2: 36
// instead of 144 for r = 3, 64 instead of 400 for r = 5. Tiles of 2 x 2 would save only a factor of
// 2.25 for r = 3; tiles of 6 x 6 need 8 points, and the error grows with every pair of points. For
// r = 5, tiles of 2 x 2 need 6 points: 36 products instead of 100, with a third of the error.
//
// Accuracy: the error comes from the powers of the points and from the differences between them, so
// the points are small numbers far from each other. Six of them are 0, +-5/8, +-3/2 and infinity,
// with about half the error of the usual 0, +-1, +-2. Eight are 0, +-1/2, +-1, +-2 and infinity,
// with three times that error. All matrices but G are exact in float.
//
// Values at the n^2 points are stored as [n^2][channels / 16, rounded up][tiles][16]. The last
// group is filled up with zeros.

#include <cstdint>
#include <memory>

#include "conv_kernels.h"
#include "cpu/conv/tiles.h"
#include "cpu/group_product.h"
#include "trainer/backend/memory/scratch_layout.h"
#include "trainer/base/thread/thread_team.h"

namespace trainer::cpu {

// A tile has `outputs` x `outputs` pixels, and the kernel `taps` x `taps`.
struct WinogradTile {
  int64_t taps, outputs;

  // Returns the number of points along one axis.
  int64_t Points() const { return taps + outputs - 1; }
};

// Patches of an image's channels. The patch of tile (i, j) begins at pixel (i * step - ph, j * step
// - pw). Pixels outside the image are 0.
struct Patches {
  int64_t h, w, pixel;  // image size, and numbers from one pixel to the next
  int64_t step, ph, pw;
  int64_t down, across;
};
// One group's product y(n, oh, ow, m) = x (*) w. For the data gradient, x is dy and y is dx.
struct WinogradShape {
  // `outputs` is the length of a tile.
  explicit WinogradShape(const ConvDesc& desc, int64_t outputs = 4);
  // Returns the shape of the data gradient, in which x is dy and y is dx.
  WinogradShape Transposed() const;

  int64_t batch, group, c, m;  // channels per group
  int64_t h, w, oh, ow, ph, pw;
  WinogradTile tile;
  int64_t points;        // n^2
  int64_t down, across;  // tiles per axis
  int64_t tiles;         // tiles of all images

  // Returns the patches of x, which overlap.
  Patches Input() const { return {h, w, group * c, tile.outputs, ph, pw, down, across}; }
  // Returns the tiles of y.
  Patches Output() const { return {oh, ow, group * m, tile.outputs, 0, 0, down, across}; }

 private:
  // Sets the numbers of points and tiles from the sizes.
  void Tile();
};

// Returns the floats from one point to the next: an odd number of cache lines, because otherwise
// all points of a tile would be in the same set of the caches. `floats` is the size of a point, a
// multiple of 16.
inline int64_t PointStep(int64_t floats) { return (floats / kLanes | 1) * kLanes; }

// Returns the number of tiles processed at once. With fewer tiles, the kernels would be read from
// the third-level cache more often; with more, the tiles would not fit the second-level cache.
inline int64_t BlockTiles(int64_t points) { return points == 36 ? 56 : 28; }

// The transforms read and write tensors of float or BFloat16 (T); values at the points are floats.

// Tiles [first, first + count) of all images, with `channels` channels.
struct TileRange {
  int64_t first, count, channels;

  // Returns the floats from one point to the next.
  int64_t Step() const { return PointStep(RoundUpToLanes(channels) * count); }
};

// Computes v = B^T x B for the patches of a range of tiles, n x n pixels each: their values at the
// points.
template <class T>
void InputToPoints(const T* x, const Patches& patches, const WinogradTile& tile,
                   const TileRange& range, float* v);
// Computes v = A dy A^T for the tiles of a range: their values at the points.
template <class T>
void GradientToPoints(const T* dy, const Patches& patches, const WinogradTile& tile,
                      const TileRange& range, float* v);
// Computes y = A^T v A from the values at the points of a range of tiles, plus the bias (null for
// 0), then max(0, y) if `rectify`; NaN is kept.
template <class T>
void PointsToOutput(const float* v, const TileRange& range, const WinogradTile& tile,
                    const float* bias, bool rectify, const Patches& patches, T* y);

// The position of tap (i, j) of input channel c and output channel m in a weight: at[c * in_step +
// m * out_step + i * tile.taps + j], or the same with the taps reversed.
struct KernelSteps {
  WinogradTile tile;
  int64_t in_step, out_step;
  bool reversed;
};
// Kernels at the points, and their gradients, are stored in panels of two vectors of outputs, at
// most: [n^2][panel][in][32 or 16] with AVX-512, [n^2][panel][in][16] with AVX2. The number of
// outputs is rounded up to a multiple of 16. Returns the outputs of a panel.
int64_t PanelOutputs();
// Returns the floats from one point to the next.
inline int64_t KernelStep(int64_t in, int64_t out) { return PointStep(in * RoundUpToLanes(out)); }
// Computes u = G w G^T, the kernels' values at the points, for inputs [c0, c1) of `in` and the 16
// outputs from `m` on, of `out`; they are 0 for outputs that do not exist.
void KernelsToPoints(const float* weight, const KernelSteps& steps, int64_t c0, int64_t c1,
                     int64_t in, int64_t m, int64_t out, float* u);
// Computes dw += G^T s G for input c of `in` and the 16 outputs from m on, of `out`. s is the sum
// of `parts` arrays, which are `part_step` floats apart.
void PointsToKernels(const float* sums, int64_t parts, int64_t part_step, const KernelSteps& steps,
                     int64_t c, int64_t in, int64_t m, int64_t out, float* dweight);

// Computes y[t, m] = sum over c of v[t, c] * u[c, m] at one point, for the outputs of panels
// [begin, end).
void MultiplyPoint(const float* v, int64_t tiles, int64_t in, const float* u, int64_t out,
                   int64_t begin, int64_t end, float* y);
// Computes s[c, m] += sum over t of v[t, c] * d[t, m] at one point, or = if `fresh`, for the
// outputs of panels [begin, end). d holds only these outputs.
void AddPoint(const float* v, const float* d, int64_t tiles, int64_t in, int64_t out, int64_t begin,
              int64_t end, bool fresh, float* s);

// Returns the reason why these loops cannot compute `desc`, or "". They need AVX-512 or AVX2, the
// conditions at the head of this file and at least 16 channels. They leave bf16 to the library if
// the processor has bf16 instructions.
std::string WinogradRefuses(const ConvDesc& desc);
// Returns the reason why these loops are slower than others, or "". With few tiles, transforming
// the kernels costs more than it saves, and tiles that extend far beyond the edge save nothing.
std::string WinogradLoses(const WinogradShape& product);
// Returns the reason why the weight gradient is slower than others, or "". It needs more tiles than
// WinogradLoses asks for.
std::string WinogradWeightLoses(const WinogradShape& product);

// Makes the forward kernel for a description that WinogradRefuses accepts.
std::unique_ptr<ConvForward> MakeWinogradForward(const ConvDesc& desc);
// Makes the kernel of the data gradient for a description that WinogradRefuses accepts.
std::unique_ptr<ConvBackwardData> MakeWinogradBackwardData(const ConvDesc& desc);
// Makes the kernel of the weight gradient for a description that WinogradRefuses accepts.
std::unique_ptr<ConvBackwardWeight> MakeWinogradBackwardWeight(const ConvDesc& desc);

}  // namespace trainer::cpu

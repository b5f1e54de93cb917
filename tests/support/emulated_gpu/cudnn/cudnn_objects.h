#pragma once
// The content of cuDNN's descriptors, and the convolution that they describe together.

#include <cstdint>
#include <string>
#include <vector>

#include "cuda/bindings/cudnn.h"
#include "trainer/tensor/dtype.h"

namespace trainer::cuda::cudnn {

struct Context {
  int device = 0;
  Stream stream = nullptr;
};
struct TensorDesc {
  int format = -1, type = -1;  // -1: not set
  std::vector<int> dims;
};
struct FilterDesc {
  int format = -1, type = -1;
  std::vector<int> dims;
};
struct ConvolutionDesc {
  std::vector<int> pad, stride, dilation;
  int compute_type = -1, groups = 1, math_type = kDefaultMath;
};
struct ActivationDesc {
  int mode = -1, nan = kNotPropagateNan;
};

}  // namespace trainer::cuda::cudnn

namespace emulated_gpu {

namespace cudnn = trainer::cuda::cudnn;
using CudnnTable = trainer::cuda::Cudnn;

enum class Direction { kForward, kData, kFilter };

// A convolution of three spatial axes; missing axes have a length of 1.
struct Convolution {
  Direction direction;
  trainer::DType type;
  bool nhwc, tf32;
  int axes, math_type;
  int64_t batch, channels, filters, groups;
  int64_t in[3], out[3], kernel[3], pad[3], stride[3], dilation[3];

  int64_t InCount() const { return batch * channels * in[0] * in[1] * in[2]; }
  int64_t OutCount() const { return batch * filters * out[0] * out[1] * out[2]; }
  int64_t Taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  int64_t FilterCount() const { return filters * (channels / groups) * Taps(); }
  size_t Bytes(int64_t count) const { return static_cast<size_t>(count) * SizeOf(type); }
};

// result = alpha * op + beta * result. The operands depend on the direction: forward x, w; data w,
// dy; filter x, dy. Forward then adds alpha2 * z + bias if they are given, and applies the
// activation.
struct Convolving {
  Convolution conv;
  float alpha, beta, alpha2 = 0;
  const void *first, *second;
  void* result;
  const void *z = nullptr, *bias = nullptr;
  bool relu = false, keeps_nan = false, jitter = false;
};
void Convolve(const Convolving& what);

// Makes `sentence` the text that GetLastErrorString returns in this thread, and returns `status`.
int Refuse(int status, const std::string& sentence);

// Reads the descriptors into `described`. Returns 0, or the status if they do not fit together or
// no algorithm supports them.
int Describe(Direction direction, CudnnTable::Handle handle, CudnnTable::Tensor x,
             CudnnTable::Filter w, CudnnTable::Convolution conv, CudnnTable::Tensor y,
             Convolution* described);

// The properties of an algorithm.
struct AlgorithmRule {
  int algo;
  bool nhwc, three_axes_nhwc;  // takes NHWC with two spatial axes, with three
  bool dilated;                // takes dilation in NCHW; in NHWC every algorithm does
  bool winograd;               // only 3 x 3, stride 1, two axes
  bool deterministic;
};
const std::vector<AlgorithmRule>& AlgorithmsOf(Direction direction);
const AlgorithmRule* FindAlgorithm(Direction direction, int algo);
// Returns 0, or the status if the algorithm does not take the convolution.
int Takes(const AlgorithmRule& rule, const Convolution& conv);
size_t WorkspaceBytes(const AlgorithmRule& rule, const Convolution& conv);

// Sets the table's functions for handles and descriptors.
void FillObjectCalls(CudnnTable* table);
// Returns whether the object was created and not destroyed.
bool IsLive(CudnnTable::Handle handle);
bool IsLive(CudnnTable::Activation activation);

}  // namespace emulated_gpu

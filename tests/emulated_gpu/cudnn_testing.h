#pragma once
// A convolution of the emulated cuDNN with its descriptors and f32 memory.

#include <algorithm>
#include <string>
#include <vector>

#include "cuda/bindings/cudnn.h"
#include "emulated_gpu/gpu_testing.h"

namespace emulated_gpu {

namespace cudnn = cuda::cudnn;
using CudnnTable = cuda::Cudnn;

inline const CudnnTable& Dnn() { return *cuda::GetCudnn(); }

class CudnnTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    ASSERT_EQ(Dnn().Create(&handle_), 0);
    ASSERT_EQ(Dnn().SetStream(handle_, stream_), 0);
  }
  void TearDown() override {
    Dnn().Destroy(handle_);
    GpuTest::TearDown();
  }
  static std::string LastError() {
    char message[256];
    Dnn().GetLastErrorString(message, sizeof(message));
    return message;
  }

  CudnnTable::Handle handle_ = nullptr;
};

struct ConvShape {
  bool nhwc = false;
  int type = cudnn::kDataFloat;
  int batch = 1, channels = 1, filters = 1, groups = 1;
  std::vector<int> in, kernel, pad, stride, dilation;

  std::vector<int> Out() const {
    std::vector<int> out;
    for (size_t i = 0; i < in.size(); ++i) {
      out.push_back((in[i] + 2 * pad[i] - dilation[i] * (kernel[i] - 1) - 1) / stride[i] + 1);
    }
    return out;
  }
};

// Its memory is for f32: with other types, only queries work.
class ConvOnDevice {
 public:
  ConvOnDevice(const ConvShape& shape, cuda::Stream stream, CudnnTable::Handle handle)
      : stream_(stream),
        handle_(handle),
        x_dims_(Dims(shape.batch, shape.channels, shape.in)),
        w_dims_(Dims(shape.filters, shape.channels / shape.groups, shape.kernel)),
        y_dims_(Dims(shape.batch, shape.filters, shape.Out())),
        x_data_(Count(x_dims_)),
        w_data_(Count(w_dims_)),
        y_data_(Count(y_dims_)),
        bias_data_(static_cast<size_t>(shape.filters)),
        workspace_(1 << 20) {
    const int format = shape.nhwc ? cudnn::kNhwc : cudnn::kNchw;
    const auto axes = static_cast<int>(shape.in.size());
    std::vector<int> bias(y_dims_.size(), 1);
    bias[1] = shape.filters;
    const auto set = [&](CudnnTable::Tensor* tensor, const std::vector<int>& dims) {
      Dnn().CreateTensorDescriptor(tensor);
      EXPECT_EQ(Dnn().SetTensorNdDescriptorEx(*tensor, format, shape.type, axes + 2, dims.data()),
                0);
    };
    set(&x_, x_dims_);
    set(&y_, y_dims_);
    set(&bias_, bias);
    Dnn().CreateFilterDescriptor(&w_);
    EXPECT_EQ(Dnn().SetFilterNdDescriptor(w_, shape.type, format, axes + 2, w_dims_.data()), 0);
    Dnn().CreateConvolutionDescriptor(&conv_);
    EXPECT_EQ(Dnn().SetConvolutionNdDescriptor(conv_, axes, shape.pad.data(), shape.stride.data(),
                                               shape.dilation.data(), cudnn::kCrossCorrelation,
                                               cudnn::kDataFloat),
              0);
    EXPECT_EQ(Dnn().SetConvolutionGroupCount(conv_, shape.groups), 0);
    Dnn().CreateActivationDescriptor(&activation_);
  }
  ~ConvOnDevice() {
    for (const CudnnTable::Tensor tensor : {x_, y_, bias_}) Dnn().DestroyTensorDescriptor(tensor);
    Dnn().DestroyFilterDescriptor(w_);
    Dnn().DestroyConvolutionDescriptor(conv_);
    Dnn().DestroyActivationDescriptor(activation_);
  }
  ConvOnDevice(const ConvOnDevice&) = delete;
  ConvOnDevice& operator=(const ConvOnDevice&) = delete;

  size_t x_count() const { return Count(x_dims_); }
  size_t w_count() const { return Count(w_dims_); }
  size_t y_count() const { return Count(y_dims_); }
  CudnnTable::Convolution conv() const { return conv_; }
  CudnnTable::Tensor y() const { return y_; }
  const float* x_data() const { return x_data_.data(); }

  // `y` is the output gradient, or is overwritten by a forward pass.
  void Set(const std::vector<float>& x, const std::vector<float>& w, const std::vector<float>& y) {
    Upload(x_data_, x);
    Upload(w_data_, w);
    Upload(y_data_, y);
  }
  ConvOnDevice& Wait() {
    EXPECT_EQ(Cuda().StreamSynchronize(stream_), 0);
    return *this;
  }
  std::vector<float> X() const { return x_data_.Values(); }
  std::vector<float> W() const { return w_data_.Values(); }
  std::vector<float> Y() const { return y_data_.Values(); }

  int Forward(int algo, size_t workspace = 1 << 20) { return Run(algo, x_data_.data(), workspace); }
  int ForwardInWorkspaceAt(size_t offset) {
    return Run(1, x_data_.data(), (1 << 20) - offset, offset);
  }
  int ForwardFrom(const float* x) { return Run(1, x, 1 << 20); }
  int Data(int algo) {
    return Dnn().ConvolutionBackwardData(handle_, &kOne, w_, w_data_.data(), y_, y_data_.data(),
                                         conv_, algo, workspace_.data(), workspace_.bytes(), &kZero,
                                         x_, x_data_.data());
  }
  int Filter(int algo) {
    return Dnn().ConvolutionBackwardFilter(handle_, &kOne, x_, x_data_.data(), y_, y_data_.data(),
                                           conv_, algo, workspace_.data(), workspace_.bytes(),
                                           &kZero, w_, w_data_.data());
  }
  // Adds y times alpha2 to the convolution, and stores the result in y.
  int Fused(int algo, bool relu, const std::vector<float>& bias, float alpha2) {
    Upload(bias_data_, bias);
    Dnn().SetActivationDescriptor(activation_,
                                  relu ? cudnn::kActivationRelu : cudnn::kActivationIdentity,
                                  cudnn::kNotPropagateNan, 0);
    return Dnn().ConvolutionBiasActivationForward(
        handle_, &kOne, x_, x_data_.data(), w_, w_data_.data(), conv_, algo, workspace_.data(),
        workspace_.bytes(), &alpha2, y_, y_data_.data(), bias_, bias_data_.data(), activation_, y_,
        y_data_.data());
  }

  // Returns the status. Direction 0 is forward, 1 is data, 2 is filter.
  int Heuristics(int direction) {
    int found = 0;
    results_.assign(20, {});
    auto* const to = results_.data();
    const int status = direction == 0 ? Dnn().GetConvolutionForwardAlgorithm_v7(
                                            handle_, x_, w_, conv_, y_, 20, &found, to)
                       : direction == 1 ? Dnn().GetConvolutionBackwardDataAlgorithm_v7(
                                              handle_, w_, y_, conv_, x_, 20, &found, to)
                                        : Dnn().GetConvolutionBackwardFilterAlgorithm_v7(
                                              handle_, x_, y_, conv_, w_, 20, &found, to);
    results_.resize(static_cast<size_t>(found));
    return status;
  }
  // Returns the algorithms that work, each once.
  std::vector<int> Algorithms(int direction) {
    EXPECT_EQ(Heuristics(direction), 0);
    return Working();
  }
  int FirstAlgorithm(int direction) { return Algorithms(direction).at(0); }
  std::vector<int> Measure(size_t workspace) {
    int found = 0;
    results_.assign(20, {});
    EXPECT_EQ(Dnn().FindConvolutionForwardAlgorithmEx(
                  handle_, x_, x_data_.data(), w_, w_data_.data(), conv_, y_, y_data_.data(), 20,
                  &found, results_.data(), workspace_.data(), workspace),
              0);
    results_.resize(static_cast<size_t>(found));
    return Working();
  }
  size_t WorkspaceOf(int algo) {
    size_t bytes = 0;
    EXPECT_EQ(Dnn().GetConvolutionForwardWorkspaceSize(handle_, x_, w_, conv_, y_, algo, &bytes),
              0);
    return bytes;
  }

 private:
  static constexpr float kOne = 1, kZero = 0;

  static std::vector<int> Dims(int outer, int channels, const std::vector<int>& spatial) {
    std::vector<int> dims = {outer, channels};
    dims.insert(dims.end(), spatial.begin(), spatial.end());
    return dims;
  }
  static size_t Count(const std::vector<int>& dims) {
    size_t count = 1;
    for (const int length : dims) count *= static_cast<size_t>(length);
    return count;
  }
  void Upload(const OnDevice<float>& to, const std::vector<float>& values) {
    ASSERT_EQ(to.bytes(), values.size() * sizeof(float));
    Cuda().MemcpyAsync(to.data(), values.data(), to.bytes(), cuda::kHostToDevice, stream_);
  }
  int Run(int algo, const float* x, size_t workspace, size_t offset = 0) {
    return Dnn().ConvolutionForward(handle_, &kOne, x_, x, w_, w_data_.data(), conv_, algo,
                                    workspace_.data() + offset, workspace, &kZero, y_,
                                    y_data_.data());
  }
  std::vector<int> Working() const {
    std::vector<int> working;
    for (const cudnn::AlgoPerf& it : results_) {
      const bool known = std::find(working.begin(), working.end(), it.algo) != working.end();
      if (it.status == cudnn::kSuccess && !known) working.push_back(it.algo);
    }
    return working;
  }

  cuda::Stream stream_;
  CudnnTable::Handle handle_;
  std::vector<int> x_dims_, w_dims_, y_dims_;
  OnDevice<float> x_data_, w_data_, y_data_, bias_data_;
  OnDevice<char> workspace_;
  CudnnTable::Tensor x_ = nullptr, y_ = nullptr, bias_ = nullptr;
  CudnnTable::Filter w_ = nullptr;
  CudnnTable::Convolution conv_ = nullptr;
  CudnnTable::Activation activation_ = nullptr;
  std::vector<cudnn::AlgoPerf> results_;
};

}  // namespace emulated_gpu

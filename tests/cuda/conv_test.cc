// Tests the calls to cuDNN, and the fallback where it declines. backend_test checks on a GPU that
// every convolution is right in every storage type; these tests check it for measured algorithms.

#include "cuda/bindings/cudnn.h"
#include "cuda/conv_run.h"
#include "cuda/gpu_testing.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

// The emulated cuDNN, with calls that a test may replace.
class ChangedCudnn {
 public:
  ChangedCudnn() : before_(cuda::GetCudnn()), table(*before_) { cuda::SetCudnn(&table); }
  ~ChangedCudnn() { cuda::SetCudnn(before_); }

 private:
  const cuda::Cudnn* before_;

 public:
  cuda::Cudnn table;
};

class CudnnTest : public EmulatedGpu {
 protected:
  static ConvDesc Line() {
    return {.batch = 3,
            .in_channels = 4,
            .out_channels = 6,
            .group = 2,
            .in = {17},
            .kernel = {4},
            .stride = {2},
            .pad = {1},
            .dilation = {1}};
  }
  static ConvDesc Volume() {
    return {.batch = 2,
            .in_channels = 3,
            .out_channels = 5,
            .in = {4, 5, 6},
            .kernel = {3, 2, 3},
            .stride = {1, 2, 1},
            .pad = {1, 0, 1},
            .dilation = {1, 1, 2}};
  }
  static ConvDesc WithRelu(ConvDesc desc, bool bias = true) {
    desc.relu = true;
    desc.bias = bias;
    return desc;
  }
  static std::vector<ConvDesc> AllKinds() {
    return {ImageConv(2, 3, 9, 8, 6, 3, 1, 1),
            ImageConv(2, 8, 7, 7, 12, 1),
            ImageConv(2, 6, 9, 8, 9, 3, 2, 1, 3),
            ImageConv(2, 5, 8, 8, 5, 3, 1, 1, 5),
            ImageConv(2, 4, 13, 12, 6, 3, 1, 2, 1, 2),
            Line(),
            Volume(),
            WithRelu(ImageConv(2, 3, 9, 8, 6, 3, 1, 1)),
            WithRelu(ImageConv(2, 3, 9, 8, 6, 3), false)};
  }
  static float Bound(DType dtype) { return BoundOf(dtype, 2e-5f, 2e-2f); }
};

TEST_F(CudnnTest, MeasuredAlgorithmsMatchTheReference) {
  for (ConvDesc desc : AllKinds()) {
    for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
      desc.dtype = dtype;
      const ConvRun run(desc);
      EXPECT_LE(ConvRun::Difference(run.On(device()), run.ByReference()), Bound(dtype))
          << desc.InShape().ToString() << NameOf(dtype) << device().NewConv(desc)->kernel();
    }
  }
}

TEST_F(CudnnTest, WeightsMayLieAnywhere) {
  for (ConvDesc desc : {ImageConv(2, 8, 7, 7, 12, 1), Line(), Volume()}) {
    const ConvRun run(desc);
    EXPECT_LE(ConvRun::Difference(run.On(device(), 3), run.ByReference()), 2e-5f);
  }
}

TEST_F(CudnnTest, ImagesAreComputedByIt) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    ConvDesc desc = ImageConv(2, 8, 9, 8, 6, 3, 1, 1);
    desc.dtype = dtype;
    const auto plan = device().NewConv(desc);
    EXPECT_THAT(plan->kernel(), StartsWith("cuDNN algorithm "));
    EXPECT_THAT(plan->skipped_kernels(), IsEmpty());
  }
}

TEST_F(CudnnTest, ShapesAreMeasuredOnce) {
  static int measured;
  measured = 0;
  static const cuda::Cudnn* real;
  real = cuda::GetCudnn();
  ChangedCudnn changed;
  changed.table.FindConvolutionForwardAlgorithmEx = [](auto... args) {
    ++measured;
    return real->FindConvolutionForwardAlgorithmEx(args...);
  };
  for (int i = 0; i < 3; ++i) (void)device().NewConv(ImageConv(2, 3, 9, 8, 6, 3, 1, 1));
  EXPECT_EQ(measured, 1);
  (void)device().NewConv(ImageConv(2, 3, 9, 8, 6, 3, 2, 1));
  EXPECT_EQ(measured, 2);
}

TEST_F(CudnnTest, WithoutMemoryForATrialItsAdviceIsTaken) {
  static int measured;
  measured = 0;
  ChangedCudnn changed;
  changed.table.FindConvolutionForwardAlgorithmEx = [](auto...) { return ++measured; };
  const ConvDesc desc = ImageConv(2, 3, 9, 8, 6, 3, 1, 1);
  (void)device();
  emulated_gpu::InjectError(emulated_gpu::CallKind::kMalloc, 0, cuda::kErrorMemoryAllocation);
  EXPECT_THAT(device().NewConv(desc)->kernel(), StartsWith("cuDNN algorithm 1"));
  EXPECT_EQ(measured, 0);
  const ConvRun run(desc);
  EXPECT_LE(ConvRun::Difference(run.On(device()), run.ByReference()), 2e-5f);
}

TEST_F(CudnnTest, DeterministicResultsRepeat) {
  static int measured;
  measured = 0;
  ChangedCudnn changed;
  changed.table.FindConvolutionBackwardFilterAlgorithmEx = [](auto...) { return ++measured; };
  const auto gpu = MakeGpuDevice({.deterministic = true});
  const ConvRun run(ImageConv(2, 3, 9, 8, 6, 3, 1, 1));
  const ConvNumbers first = run.On(*gpu);
  for (int i = 0; i < 3; ++i) {
    const ConvNumbers again = run.On(*gpu);
    EXPECT_EQ(again.y, first.y);
    EXPECT_EQ(again.dx, first.dx);
    EXPECT_EQ(again.dweight, first.dweight);
  }
  EXPECT_EQ(measured, 0);
}

TEST_F(CudnnTest, RandomAlgorithmsAreDeclinedWhereResultsMustRepeat) {
  static const cuda::Cudnn* real;
  real = cuda::GetCudnn();
  ChangedCudnn changed;
  changed.table.GetConvolutionBackwardDataAlgorithm_v7 =
      [](cuda::cudnn::Handle handle, cuda::Cudnn::Filter w, cuda::Cudnn::Tensor dy,
         cuda::Cudnn::Convolution conv, cuda::Cudnn::Tensor dx, int most, int* found,
         cuda::cudnn::AlgoPerf* results) {
        const int status = real->GetConvolutionBackwardDataAlgorithm_v7(handle, w, dy, conv, dx,
                                                                        most, found, results);
        for (int i = 0; i < *found; ++i) results[i].determinism = cuda::cudnn::kNonDeterministic;
        return status;
      };
  const auto gpu = MakeGpuDevice({.deterministic = true});
  EXPECT_THAT(gpu->NewConv(ImageConv(2, 3, 9, 8, 6, 3, 1, 1))->skipped_kernels(),
              Contains("data gradient: cuDNN: none of its algorithms repeats bit for bit"));
}

TEST_F(CudnnTest, TooMuchWorkspaceIsDeclinedAndOwnKernelsCompute) {
  ChangedCudnn changed;
  changed.table.GetConvolutionForwardWorkspaceSize =
      [](cuda::cudnn::Handle, cuda::Cudnn::Tensor, cuda::Cudnn::Filter, cuda::Cudnn::Convolution,
         cuda::Cudnn::Tensor, int, size_t* bytes) {
        *bytes = size_t{2} << 30;
        return 0;
      };
  const ConvRun run(ImageConv(2, 3, 9, 8, 6, 3, 1, 1));
  const auto plan = device().NewConv(ImageConv(2, 3, 9, 8, 6, 3, 1, 1));
  EXPECT_THAT(plan->skipped_kernels(),
              Contains("forward: cuDNN: its algorithms need 2048 MiB of workspace, more than 512"));
  EXPECT_THAT(plan->kernel(), StartsWith("direct"));
  EXPECT_LE(ConvRun::Difference(run.On(device()), run.ByReference()), 2e-5f);
}

TEST_F(CudnnTest, WithoutTheLibraryOwnKernelsCompute) {
  const cuda::Cudnn* before = cuda::GetCudnn();
  cuda::SetCudnn(nullptr);
  const ConvRun run(ImageConv(2, 3, 9, 8, 6, 3, 1, 1));
  EXPECT_THAT(device().NewConv(ImageConv(2, 3, 9, 8, 6, 3, 1, 1))->skipped_kernels(),
              Contains("forward: cuDNN: the library was not found"));
  EXPECT_LE(ConvRun::Difference(run.On(device()), run.ByReference()), 2e-5f);
  EXPECT_THAT(FindGpus().missing, Contains(HasSubstr("cuDNN 9 was not found (libcudnn.so.9); ")));
  cuda::SetCudnn(before);
}

TEST_F(CudnnTest, FourSpatialAxesAreDeclined) {
  const std::vector<int64_t> one(4, 1);
  const ConvDesc desc = {.batch = 1,
                         .in_channels = 2,
                         .out_channels = 3,
                         .in = {3, 3, 3, 3},
                         .kernel = {2, 2, 2, 2},
                         .stride = one,
                         .pad = one,
                         .dilation = one};
  EXPECT_THAT(device().NewConv(desc)->skipped_kernels(),
              Contains("forward: cuDNN: it supports up to 3 spatial axes, not 4"));
}

// NaN remains whether or not the library's fused call would drop it.
TEST_F(CudnnTest, ReluKeepsNan) {
  for (const bool library_keeps : {true, false}) {
    for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
      End();
      emulated_gpu::Reset({.fused_relu_keeps_nan = library_keeps});
      ConvDesc desc = WithRelu(ImageConv(1, 2, 4, 4, 3, 1));
      desc.dtype = dtype;
      ConvRun run(desc);
      run.x()[0] = NAN;
      const std::vector<float> y = run.On(device()).y;
      EXPECT_THAT(std::vector(y.begin(), y.begin() + 3), Each(testing::IsNan()));
      EXPECT_THAT(std::vector(y.begin() + 3, y.end()), Each(testing::Ge(0.0f))) << library_keeps;
    }
  }
}

// The library drops NaN unless it is asked to keep it, which not every version supports.
TEST_F(CudnnTest, ReluIsAskedToPropagateNanFirst) {
  for (const bool propagates : {false, true}) {
    for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
      End();
      emulated_gpu::Reset({.fused_relu_keeps_nan = false, .fused_relu_propagates_nan = propagates});
      ConvDesc desc = WithRelu(ImageConv(1, 2, 4, 4, 3, 1));
      desc.dtype = dtype;
      EXPECT_THAT(device().NewConv(desc)->kernel(),
                  HasSubstr(propagates ? " with bias and ReLU" : ", bias and ReLU apart"));
      ConvRun run(desc);
      EXPECT_LE(ConvRun::Difference(run.On(device()), run.ByReference()), Bound(dtype));
      run.x()[0] = NAN;
      const std::vector<float> y = run.On(device()).y;
      EXPECT_THAT(std::vector(y.begin(), y.begin() + 3), Each(testing::IsNan()));
    }
  }
}

TEST_F(CudnnTest, AFusedCallThatNeedsMoreWorkspaceGetsItOnce) {
  const ConvDesc desc = WithRelu(ImageConv(2, 3, 9, 8, 6, 3, 1, 1));
  for (const auto& [more, fuses] : {std::pair(size_t{512}, true), {size_t{1} << 20, false}}) {
    End();
    emulated_gpu::Reset({.fused_workspace = more});
    const auto plan = device().NewConv(desc);
    EXPECT_EQ(plan->kernel().find(" with bias and ReLU") != std::string::npos, fuses) << more;
    const ConvRun run(desc);
    EXPECT_LE(ConvRun::Difference(run.On(device()), run.ByReference()), Bound(desc.dtype));
  }
}

// In f16, a dropped NaN still shows in the gradient of the weights.
TEST_F(CudnnTest, ReluDropsNanInF16AloneWhereItMay) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    End();
    emulated_gpu::Reset({.fused_relu_keeps_nan = false});
    ConvDesc desc = WithRelu(ImageConv(1, 2, 4, 4, 3, 1));
    desc.dtype = dtype;
    ConvRun run(desc);
    EXPECT_LE(ConvRun::Difference(run.On(device(), 0, true), run.ByReference()), Bound(dtype));
    run.x()[0] = INFINITY;
    run.x()[1] = -INFINITY;
    const ConvNumbers numbers = run.On(device(), 0, true);
    const auto is_nan = [](float value) { return std::isnan(value); };
    EXPECT_EQ(std::ranges::none_of(numbers.y, is_nan), dtype == DType::kF16);
    EXPECT_TRUE(
        std::ranges::any_of(numbers.dweight, [](float value) { return !std::isfinite(value); }));
  }
}

TEST_F(CudnnTest, BiasAndReluArePartOfItsCallWhereItKeepsNanOrNeedNot) {
  static int fused;
  static const cuda::Cudnn* real;
  real = cuda::GetCudnn();
  ChangedCudnn changed;
  changed.table.ConvolutionBiasActivationForward = [](auto... args) {
    ++fused;
    return real->ConvolutionBiasActivationForward(args...);
  };
  ConvDesc desc = WithRelu(ImageConv(2, 3, 9, 8, 6, 3, 1, 1));
  desc.dtype = DType::kF16;
  for (const bool library_keeps : {true, false}) {
    for (const bool may_drop : {true, false}) {
      End();
      emulated_gpu::Reset({.fused_relu_keeps_nan = library_keeps});
      fused = 0;
      (void)ConvRun(desc).On(device(), 0, may_drop);
      EXPECT_EQ(fused, library_keeps || may_drop ? 3 : 2) << "two trials, and the call";
    }
  }
  const auto plan = device().NewConv(desc);
  EXPECT_THAT(plan->kernel(), HasSubstr(", bias and ReLU apart, data gradient"));
  plan->AllowDroppedNan();
  EXPECT_THAT(plan->kernel(), HasSubstr(" with bias and ReLU, data gradient"));
}

TEST_F(CudnnTest, NumbersAreRoundedOnlyWhereTheUserAllowsIt) {
  const ConvRun run(ImageConv(2, 8, 9, 8, 6, 3, 1, 1));
  const auto rounding = MakeGpuDevice({.tf32 = true, .deterministic = true});
  EXPECT_LE(ConvRun::Difference(run.On(device()), run.ByReference()), 1e-5f);
  const float rounded = ConvRun::Difference(run.On(*rounding), run.ByReference());
  EXPECT_GT(rounded, 1e-5f);
  EXPECT_LE(rounded, 5e-3f);
}

TEST_F(CudnnTest, AFailureNamesTheCallAndTheGpu) {
  ConvDesc desc = ImageConv(2, 3, 9, 8, 6, 3, 1, 1);
  desc.bias = false;  // a bias may be part of another call
  const ConvRun run(desc);
  (void)run.On(device());
  ChangedCudnn changed;
  changed.table.ConvolutionForward = [](auto...) { return cuda::cudnn::kExecutionFailed; };
  const auto [code, message] = ErrorOf([&] { (void)run.On(device()); });
  EXPECT_EQ(code, ErrorCode::kInternal);
  EXPECT_THAT(message, AllOf(HasSubstr("cuDNN failed on GPU 0 (Emulated GPU) while convolving "
                                       "(cudnnConvolutionForward): CUDNN_STATUS_EXECUTION_FAILED"),
                             Not(HasSubstr("\n"))));
}

}  // namespace
}  // namespace trainer

#include "cuda/bindings/cudnn.h"

#include <cmath>
#include <numeric>
#include <set>

#include "emulated_gpu/cudnn_testing.h"

namespace emulated_gpu {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

// Returns small whole numbers, which sum without rounding.
std::vector<float> Numbers(size_t n, int seed) {
  std::vector<float> numbers(n);
  for (size_t i = 0; i < n; ++i) {
    numbers[i] =
        static_cast<float>(static_cast<int>(i * 7 + static_cast<size_t>(seed) * 3) % 11 - 5);
  }
  return numbers;
}

double Dot(const std::vector<float>& a, const std::vector<float>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

TEST_F(CudnnTest, ConvolvesByHand) {
  // 1 2 3; 4 5 6; 7 8 9 with the kernel 1 10; 100 1000
  ConvOnDevice conv(
      {.in = {3, 3}, .kernel = {2, 2}, .pad = {0, 0}, .stride = {1, 1}, .dilation = {1, 1}},
      stream_, handle_);
  conv.Set({1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 10, 100, 1000}, {0, 0, 0, 0});
  EXPECT_EQ(conv.Forward(1), 0);
  EXPECT_TRUE(std::isnan(conv.Y()[0]) || conv.Y()[0] == 0);  // it runs later
  EXPECT_THAT(conv.Wait().Y(), ElementsAre(5421, 6532, 8754, 9865));
}

TEST_F(CudnnTest, GradientsAreThoseOfTheForwardSum) {
  // The sum of forward(x, w) * dy equals the sums of x * data(w, dy) and of w * filter(x, dy).
  const ConvShape shapes[] = {{.batch = 2,
                               .channels = 4,
                               .filters = 6,
                               .groups = 2,
                               .in = {7, 6},
                               .kernel = {3, 2},
                               .pad = {1, 2},
                               .stride = {2, 1},
                               .dilation = {1, 2}},
                              {.batch = 2,
                               .channels = 3,
                               .filters = 3,
                               .groups = 3,
                               .in = {5, 5},
                               .kernel = {3, 3},
                               .pad = {1, 1},
                               .stride = {1, 1},
                               .dilation = {1, 1}},
                              {.batch = 1,
                               .channels = 2,
                               .filters = 4,
                               .groups = 1,
                               .in = {4, 5, 3},
                               .kernel = {2, 3, 1},
                               .pad = {1, 0, 0},
                               .stride = {1, 2, 1},
                               .dilation = {2, 1, 1}}};
  for (ConvShape shape : shapes) {
    for (const bool nhwc : {false, true}) {
      shape.nhwc = nhwc;
      ConvOnDevice conv(shape, stream_, handle_);
      const auto x = Numbers(conv.x_count(), 1), w = Numbers(conv.w_count(), 2),
                 dy = Numbers(conv.y_count(), 3);
      conv.Set(x, w, dy);
      EXPECT_EQ(conv.Forward(1), 0);
      const double forward = Dot(conv.Wait().Y(), dy);
      conv.Set(x, w, dy);
      const int data_algo = conv.FirstAlgorithm(1);
      EXPECT_EQ(conv.Data(data_algo), 0);
      EXPECT_NEAR(Dot(conv.Wait().X(), x), forward, 0.01);
      conv.Set(x, w, dy);
      EXPECT_EQ(conv.Filter(1), 0);
      EXPECT_NEAR(Dot(conv.Wait().W(), w), forward, 0.01);
      EXPECT_GT(std::abs(forward), 0.5);
    }
  }
  EXPECT_THAT(Problems(), IsEmpty());
}

TEST_F(CudnnTest, FormatsDifferInTheOrderOfMemoryAlone) {
  ConvShape shape = {.channels = 2,
                     .in = {1, 2},
                     .kernel = {1, 1},
                     .pad = {0, 0},
                     .stride = {1, 1},
                     .dilation = {1, 1}};
  for (const bool nhwc : {false, true}) {
    shape.nhwc = nhwc;
    ConvOnDevice conv(shape, stream_, handle_);
    conv.Set(nhwc ? std::vector<float>{1, 3, 2, 4} : std::vector<float>{1, 2, 3, 4}, {1, 10},
             {0, 0});
    EXPECT_EQ(conv.Forward(1), 0);
    EXPECT_THAT(conv.Wait().Y(), ElementsAre(31, 42));
  }
}

TEST_F(CudnnTest, AddsBiasSumAndActivation) {
  for (const bool relu : {false, true}) {
    ConvOnDevice conv({.filters = 2,
                       .in = {1, 1},
                       .kernel = {1, 1},
                       .pad = {0, 0},
                       .stride = {1, 1},
                       .dilation = {1, 1}},
                      stream_, handle_);
    conv.Set({3}, {2, -2}, {100, 1});
    EXPECT_EQ(conv.Fused(1, relu, {0.5f, 0.25f}, 1), 0);
    EXPECT_THAT(conv.Wait().Y(), ElementsAre(106.5f, relu ? 0 : -4.75f));
    EXPECT_EQ(conv.Fused(0, relu, {0.5f, 0.25f}, 1), relu ? 0 : cudnn::kNotSupported);
  }
}

TEST_F(CudnnTest, AFusedReluKeepsNanAsTheTestSays) {
  for (const bool keeps : {false, true}) {
    Options options;
    options.fused_relu_keeps_nan = keeps;
    Reset(options);
    ConvOnDevice conv(
        {.in = {1, 1}, .kernel = {1, 1}, .pad = {0, 0}, .stride = {1, 1}, .dilation = {1, 1}},
        stream_, handle_);
    conv.Set({NAN}, {1}, {0});
    EXPECT_EQ(conv.Fused(1, true, {0}, 0), 0);
    EXPECT_EQ(std::isnan(conv.Wait().Y()[0]), keeps);
  }
}

TEST_F(CudnnTest, RoundsF32UnlessTheMathIsFma) {
  const float fine = 1 + 1.0f / 4096;
  for (const int math : {cudnn::kDefaultMath, cudnn::kFmaMath}) {
    ConvOnDevice conv(
        {.in = {1, 1}, .kernel = {1, 1}, .pad = {0, 0}, .stride = {1, 1}, .dilation = {1, 1}},
        stream_, handle_);
    EXPECT_EQ(Dnn().SetConvolutionMathType(conv.conv(), math), 0);
    conv.Set({fine}, {1}, {0});
    EXPECT_EQ(conv.Forward(1), 0);
    EXPECT_FLOAT_EQ(conv.Wait().Y()[0], math == cudnn::kFmaMath ? fine : 1);
  }
}

const ConvShape kImage = {.batch = 2,
                          .channels = 4,
                          .filters = 4,
                          .in = {6, 6},
                          .kernel = {3, 3},
                          .pad = {1, 1},
                          .stride = {1, 1},
                          .dilation = {1, 1}};

TEST_F(CudnnTest, ListsAlgorithmsThoseThatWorkFirst) {
  ConvShape shape = kImage;
  ConvOnDevice nchw(shape, stream_, handle_);
  EXPECT_THAT(nchw.Algorithms(0), ElementsAre(1, 0, 7, 2));
  EXPECT_THAT(nchw.Algorithms(1), ElementsAre(1, 0, 5));
  EXPECT_THAT(nchw.Algorithms(2), ElementsAre(1, 0, 3, 5));
  shape.nhwc = true;
  ConvOnDevice nhwc(shape, stream_, handle_);
  EXPECT_THAT(nhwc.Algorithms(0), ElementsAre(1, 0));
  EXPECT_THAT(nhwc.Algorithms(2), ElementsAre(1, 0));
  shape.nhwc = false;
  shape.dilation = {2, 2};
  shape.pad = {2, 2};
  ConvOnDevice dilated(shape, stream_, handle_);
  EXPECT_THAT(dilated.Algorithms(0), ElementsAre(1, 0));
  EXPECT_THAT(dilated.Algorithms(1), ElementsAre(0));
  const ConvShape volume = {.nhwc = true,
                            .in = {3, 3, 3},
                            .kernel = {2, 2, 2},
                            .pad = {0, 0, 0},
                            .stride = {1, 1, 1},
                            .dilation = {1, 1, 1}};
  ConvOnDevice three(volume, stream_, handle_);
  EXPECT_THAT(three.Algorithms(0), ElementsAre(1));
}

TEST_F(CudnnTest, MeasuringOverwritesTheResultAndLeavesOutWhatHasNoRoom) {
  ConvOnDevice conv(kImage, stream_, handle_);
  conv.Set(Numbers(conv.x_count(), 1), Numbers(conv.w_count(), 2), Numbers(conv.y_count(), 3));
  ResetCounters();
  EXPECT_THAT(conv.Measure(1 << 20), SizeIs(4));
  EXPECT_EQ(Count().synchronizations, 1);
  EXPECT_TRUE(std::isnan(conv.Y()[0]));
  EXPECT_THAT(conv.Measure(0), ElementsAre(0));
}

TEST_F(CudnnTest, AnAlgorithmWithoutAFixedOrderDoesNotRepeat) {
  ConvOnDevice conv(kImage, stream_, handle_);
  std::set<std::vector<float>> fixed, free;
  for (int round = 0; round < 4; ++round) {
    for (const int algo : {1, 0}) {
      conv.Set(std::vector<float>(conv.x_count(), 0.1f), Numbers(conv.w_count(), 2),
               std::vector<float>(conv.y_count(), 0.3f));
      EXPECT_EQ(conv.Filter(algo), 0);
      (algo == 1 ? fixed : free).insert(conv.Wait().W());
    }
  }
  EXPECT_THAT(fixed, SizeIs(1));
  EXPECT_GT(free.size(), 1u);
}

TEST_F(CudnnTest, RefusesDescriptorsThatDoNotFit) {
  ConvOnDevice conv(kImage, stream_, handle_);
  const int small[] = {2, 4, 5, 6}, flat[] = {4, 4, 6}, none[] = {2, 4, 0, 6};
  EXPECT_EQ(Dnn().SetTensorNdDescriptorEx(conv.y(), cudnn::kNchw, cudnn::kDataFloat, 4, none),
            cudnn::kBadParam);
  Dnn().SetTensorNdDescriptorEx(conv.y(), cudnn::kNchw, cudnn::kDataFloat, 4, small);
  EXPECT_EQ(cudnn::CategoryOf(conv.Forward(1)), cudnn::kNotSupported);
  EXPECT_THAT(LastError(), HasSubstr("spatial axis 0 of the output"));
  Dnn().SetTensorNdDescriptorEx(conv.y(), cudnn::kNchw, cudnn::kDataFloat, 3, flat);
  EXPECT_EQ(conv.Forward(1), cudnn::kBadParam);
  const int right[] = {2, 4, 6, 6};
  Dnn().SetTensorNdDescriptorEx(conv.y(), cudnn::kNhwc, cudnn::kDataFloat, 4, right);
  EXPECT_EQ(cudnn::CategoryOf(conv.Forward(1)), cudnn::kNotSupported);
  EXPECT_THAT(LastError(), HasSubstr("more than one format"));
  Dnn().SetTensorNdDescriptorEx(conv.y(), cudnn::kNchw, cudnn::kDataBFloat16, 4, right);
  EXPECT_EQ(conv.Forward(1), cudnn::kBadParam);
  Dnn().SetTensorNdDescriptorEx(conv.y(), cudnn::kNchw, cudnn::kDataFloat, 4, right);
  EXPECT_EQ(conv.Forward(1), 0);
  Dnn().SetConvolutionGroupCount(conv.conv(), 2);
  EXPECT_EQ(cudnn::CategoryOf(conv.Forward(1)), cudnn::kBadParam);
  EXPECT_EQ(Dnn().SetConvolutionGroupCount(conv.conv(), 0), cudnn::kBadParam);
}

TEST_F(CudnnTest, RefusesOperandsAndWorkspaces) {
  ConvOnDevice conv(kImage, stream_, handle_);
  EXPECT_EQ(conv.Forward(3), cudnn::kNotSupported);
  EXPECT_EQ(conv.Forward(1, conv.WorkspaceOf(1) - 1), 2006);
  EXPECT_THAT(Problems(), IsEmpty());
  EXPECT_EQ(conv.ForwardFrom(conv.x_data() + 1), cudnn::kBadParam);  // past the end
  EXPECT_THAT(Problems(), SizeIs(1));
  const OnDevice<float> more(conv.x_count() + 4);
  EXPECT_EQ(conv.ForwardFrom(more.data() + 1), 2003);
  EXPECT_EQ(conv.ForwardFrom(more.data() + 4), 0);
  EXPECT_EQ(conv.ForwardInWorkspaceAt(256), 0);
  EXPECT_EQ(conv.ForwardInWorkspaceAt(64), 2003);
  EXPECT_THAT(Problems().back(), HasSubstr("64 bytes behind a multiple of 256 bytes"));
}

TEST_F(CudnnTest, AHandleIsOfTheDeviceThatItWasMadeFor) {
  Reset({.devices = {{}, {}}});
  ConvOnDevice conv(kImage, stream_, handle_);
  EXPECT_EQ(conv.Forward(1), 0);
  Cuda().SetDevice(1);
  EXPECT_EQ(conv.Forward(1), cudnn::kExecutionFailed);
  EXPECT_THAT(Problems(), ElementsAre(HasSubstr("of device 0, and the thread uses device 1")));
  Cuda().SetDevice(0);
}

TEST_F(CudnnTest, OldDevicesHaveNoBfloat16) {
  ConvShape shape = kImage;
  shape.type = cudnn::kDataBFloat16;
  ConvOnDevice conv(shape, stream_, handle_);
  EXPECT_EQ(conv.Heuristics(0), 0);
  Options old;
  old.devices[0].major = 7;
  Reset(old);
  EXPECT_EQ(cudnn::CategoryOf(conv.Heuristics(0)), cudnn::kNotSupported);
  shape.type = cudnn::kDataHalf;
  ConvOnDevice half(shape, stream_, handle_);
  EXPECT_EQ(half.Heuristics(0), 0);
}

TEST_F(CudnnTest, ATestRefusesCallsOrLetsThemFail) {
  ConvOnDevice conv(kImage, stream_, handle_);
  RefuseLibraryCalls("cudnnConvolutionForward");
  EXPECT_EQ(conv.Forward(1), cudnn::kNotSupported);
  EXPECT_EQ(conv.Filter(1), 0);
  Reset();
  EXPECT_EQ(conv.Forward(1), 0);
  InjectError(CallKind::kLibrary, 0, cudnn::kInternalError);
  EXPECT_EQ(conv.Forward(1), cudnn::kInternalError);
  SetStickyError(700);
  EXPECT_EQ(conv.Forward(1), cudnn::kExecutionFailed);
  Reset();
}

TEST_F(CudnnTest, AHandleNeedsAStream) {
  CudnnTable::Handle bare = nullptr;
  ASSERT_EQ(Dnn().Create(&bare), 0);
  {
    ConvOnDevice conv(kImage, stream_, bare);
    EXPECT_EQ(conv.Forward(1), cudnn::kExecutionFailed);
  }
  EXPECT_EQ(Dnn().Destroy(bare), 0);
  EXPECT_EQ(Dnn().Destroy(bare), cudnn::kBadParam);
  EXPECT_THAT(Problems(), SizeIs(2));
}

}  // namespace
}  // namespace emulated_gpu

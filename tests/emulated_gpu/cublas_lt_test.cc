#include "cuda/bindings/cublas_lt.h"

#include <cmath>
#include <optional>
#include <set>

#include "emulated_gpu/gpu_testing.h"
#include "trainer/tensor/dtype.h"

namespace emulated_gpu {
namespace {

namespace lt = cuda::cublas_lt;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using trainer::BFloat16;

const cuda::CublasLt& Lt() { return *cuda::GetCublasLt(); }

class CublasLtTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    ASSERT_EQ(Lt().Create(&handle_), 0);
    ASSERT_EQ(Lt().MatmulDescCreate(&desc_, lt::kCompute32F, lt::kReal32F), 0);
    ASSERT_EQ(Lt().MatmulPreferenceCreate(&wish_), 0);
    SetWish<uint64_t>(lt::kPrefMaxWorkspaceBytes, 1 << 20);
  }
  void TearDown() override {
    workspace_.reset();
    for (lt::MatrixLayout* const layout : layouts_) Lt().MatrixLayoutDestroy(layout);
    Lt().MatmulPreferenceDestroy(wish_);
    Lt().MatmulDescDestroy(desc_);
    Lt().Destroy(handle_);
    GpuTest::TearDown();
  }

  template <class T>
  void SetWish(int attribute, T value) {
    ASSERT_EQ(Lt().MatmulPreferenceSetAttribute(wish_, attribute, &value, sizeof(value)), 0);
  }
  template <class T>
  void SetDesc(int attribute, T value) {
    ASSERT_EQ(Lt().MatmulDescSetAttribute(desc_, attribute, &value, sizeof(value)), 0);
  }
  lt::MatrixLayout* Layout(int type, uint64_t rows, uint64_t columns, int64_t leading = 0) {
    lt::MatrixLayout* layout = nullptr;
    EXPECT_EQ(Lt().MatrixLayoutCreate(&layout, type, rows, columns,
                                      leading == 0 ? static_cast<int64_t>(rows) : leading),
              0);
    layouts_.push_back(layout);
    return layout;
  }
  // Finds algorithms, stores them in results_ and returns the status.
  int Find(lt::MatrixLayout* a, lt::MatrixLayout* b, lt::MatrixLayout* d) {
    results_.assign(8, {});
    int found = 0;
    const int status =
        Lt().MatmulAlgoGetHeuristic(handle_, desc_, a, b, d, d, wish_, 8, results_.data(), &found);
    results_.resize(static_cast<size_t>(found));
    return status;
  }
  int Multiply(const lt::HeuristicResult& algorithm, const void* a, lt::MatrixLayout* a_layout,
               const void* b, lt::MatrixLayout* b_layout, void* d, lt::MatrixLayout* d_layout,
               float beta = 0) {
    const float alpha = 2;
    if (algorithm.workspace_size > 0) workspace_.emplace(algorithm.workspace_size);
    return Lt().Matmul(handle_, desc_, &alpha, a, a_layout, b, b_layout, &beta, d, d_layout, d,
                       d_layout, &algorithm.algo, workspace_ ? workspace_->data() : nullptr,
                       algorithm.workspace_size, stream_);
  }

  template <class T>
  void Upload(const OnDevice<T>& to, const std::vector<T>& values) {
    Cuda().MemcpyAsync(to.data(), values.data(), to.bytes(), cuda::kHostToDevice, stream_);
  }

  lt::Handle handle_ = nullptr;
  lt::MatmulDesc* desc_ = nullptr;
  lt::MatmulPreference* wish_ = nullptr;
  std::vector<lt::MatrixLayout*> layouts_;
  std::vector<lt::HeuristicResult> results_;
  std::optional<OnDevice<char>> workspace_;
};

TEST_F(CublasLtTest, MultipliesColumnMajorMatricesLate) {
  // (1 2 3; 4 5 6) * (1; 1; 2) * 2 + bias (10; 20)
  const OnDevice<float> a(6), b(3), d(2), bias(2);
  Upload(a, {1, 4, 2, 5, 3, 6});
  Upload(b, {1, 1, 2});
  Upload(bias, {10, 20});
  SetDesc<int32_t>(lt::kDescEpilogue, lt::kEpilogueBias);
  SetDesc<const void*>(lt::kDescBiasPointer, bias.data());
  auto *la = Layout(lt::kReal32F, 2, 3), *lb = Layout(lt::kReal32F, 3, 1),
       *ld = Layout(lt::kReal32F, 2, 1);
  ASSERT_EQ(Find(la, lb, ld), 0);
  ASSERT_THAT(results_, SizeIs(3));
  for (const lt::HeuristicResult& result : results_) {
    Cuda().MemsetAsync(d.data(), 0xff, d.bytes(), stream_);
    Cuda().StreamSynchronize(stream_);
    EXPECT_EQ(Multiply(result, a.data(), la, b.data(), lb, d.data(), ld), 0);
    EXPECT_TRUE(std::isnan(d.Values()[0]));
    Cuda().StreamSynchronize(stream_);
    EXPECT_THAT(d.Values(), ElementsAre(testing::FloatEq(28), testing::FloatEq(62)));
  }
  EXPECT_THAT(Problems(), IsEmpty());
}

TEST_F(CublasLtTest, TransposesAndAddsToWhatIsThere) {
  // A is stored as 3 x 2 with an unused row after each column, B as 1 x 3.
  const OnDevice<float> a(8), b(3), d(2);
  Upload(a, {1, 2, 3, -1, 4, 5, 6, -1});
  Upload(b, {1, 1, 2});
  Upload(d, {100, 200});
  SetDesc<int32_t>(lt::kDescTransA, lt::kOpT);
  SetDesc<int32_t>(lt::kDescTransB, lt::kOpT);
  auto *la = Layout(lt::kReal32F, 3, 2, 4), *lb = Layout(lt::kReal32F, 1, 3),
       *ld = Layout(lt::kReal32F, 2, 1);
  ASSERT_EQ(Find(la, lb, ld), 0);
  EXPECT_EQ(Multiply(results_.back(), a.data(), la, b.data(), lb, d.data(), ld, 0.5f), 0);
  Cuda().StreamSynchronize(stream_);
  EXPECT_THAT(d.Values(), ElementsAre(testing::FloatEq(68), testing::FloatEq(142)));
}

TEST_F(CublasLtTest, RoundsF32OnlyWhereTf32IsAllowed) {
  const OnDevice<float> a(1), b(1), d(1);
  const float fine = 1 + 1.0f / 4096;
  Upload(a, {fine});
  Upload(b, {1});
  for (const bool tf32 : {false, true}) {
    Lt().MatmulDescDestroy(desc_);
    Lt().MatmulDescCreate(&desc_, tf32 ? lt::kCompute32FFastTf32 : lt::kCompute32F, lt::kReal32F);
    auto* const one = Layout(lt::kReal32F, 1, 1);
    ASSERT_EQ(Find(one, one, one), 0);
    EXPECT_EQ(Multiply(results_.back(), a.data(), one, b.data(), one, d.data(), one), 0);
    Cuda().StreamSynchronize(stream_);
    EXPECT_FLOAT_EQ(d.Values()[0], tf32 ? 2 : 2 * fine);
  }
}

TEST_F(CublasLtTest, TakesBfloat16WithAResultOfEitherType) {
  const OnDevice<BFloat16> a(2);
  const OnDevice<float> d(1);
  std::vector<BFloat16> values(2);
  trainer::Store(values[0], 1.5f);
  trainer::Store(values[1], 3);
  Upload(a, values);
  auto *la = Layout(lt::kReal16BF, 1, 2), *lb = Layout(lt::kReal16BF, 2, 1),
       *ld = Layout(lt::kReal32F, 1, 1), *l16 = Layout(lt::kReal16BF, 1, 1);
  ASSERT_EQ(Find(la, lb, l16), 0);
  ASSERT_EQ(Find(la, lb, ld), 0);
  EXPECT_EQ(Multiply(results_.back(), a.data(), la, a.data(), lb, d.data(), ld), 0);
  Cuda().StreamSynchronize(stream_);
  EXPECT_FLOAT_EQ(d.Values()[0], 22.5f);
}

TEST_F(CublasLtTest, RefusesWhatItHasNoKernelFor) {
  constexpr int kReal64F = 1;
  auto *f32 = Layout(lt::kReal32F, 4, 4), *bf16 = Layout(lt::kReal16BF, 4, 4),
       *f16 = Layout(lt::kReal16F, 4, 4), *other = Layout(lt::kReal32F, 4, 5);
  EXPECT_EQ(Find(f32, f32, bf16), lt::kNotSupported);
  EXPECT_EQ(Find(f32, bf16, f32), lt::kNotSupported);
  EXPECT_EQ(Find(f32, f32, f16), lt::kNotSupported);
  EXPECT_EQ(Find(f16, bf16, f32), lt::kNotSupported);
  EXPECT_EQ(Find(f16, f16, bf16), lt::kNotSupported);
  EXPECT_EQ(Find(f16, f16, f16), 0);
  EXPECT_EQ(Find(f16, f16, f32), 0);
  EXPECT_EQ(Find(Layout(kReal64F, 4, 4), f32, f32), lt::kInvalidValue);
  EXPECT_EQ(Find(f32, f32, other), lt::kInvalidValue);
  SetDesc<int32_t>(lt::kDescEpilogue, lt::kEpilogueBias);
  EXPECT_EQ(Find(f32, f32, f32), 0);
  EXPECT_EQ(Find(bf16, bf16, bf16), lt::kNotSupported);
  SetDesc<int32_t>(lt::kDescEpilogue, 2);
  EXPECT_EQ(Find(f32, f32, f32), lt::kNotSupported);
  SetDesc<int32_t>(lt::kDescEpilogue, lt::kEpilogueDefault);
  Options old;
  old.devices[0].major = 7;
  Reset(old);
  EXPECT_EQ(Find(bf16, bf16, bf16), lt::kNotSupported);
  EXPECT_EQ(Find(f16, f16, f16), 0);
  EXPECT_EQ(Find(f32, f32, f32), 0);
}

TEST_F(CublasLtTest, GivesAlgorithmsWithinTheWorkspaceAndTheReductions) {
  auto* const square = Layout(lt::kReal32F, 4, 4);
  ASSERT_EQ(Find(square, square, square), 0);
  EXPECT_THAT(results_, SizeIs(3));
  SetWish<uint64_t>(lt::kPrefMaxWorkspaceBytes, 0);
  ASSERT_EQ(Find(square, square, square), 0);
  EXPECT_THAT(results_, SizeIs(2));
  SetWish<uint32_t>(lt::kPrefReductionSchemeMask, lt::kReductionComputeType);
  ASSERT_EQ(Find(square, square, square), 0);
  EXPECT_THAT(results_, SizeIs(1));
}

TEST_F(CublasLtTest, AddsInPlaceInNoFixedOrder) {
  const OnDevice<float> a(64), d(64);
  Upload(a, std::vector<float>(64, 1.1f));
  auto* const square = Layout(lt::kReal32F, 8, 8);
  ASSERT_EQ(Find(square, square, square), 0);
  std::set<std::vector<float>> found[3];
  for (int round = 0; round < 5; ++round) {
    for (size_t i = 0; i < 3; ++i) {
      Multiply(results_[i], a.data(), square, a.data(), square, d.data(), square);
      Cuda().StreamSynchronize(stream_);
      found[i].insert(d.Values());
    }
  }
  EXPECT_THAT(found[0], SizeIs(1));
  EXPECT_GT(found[1].size(), 1u);
  EXPECT_THAT(found[2], SizeIs(1));
}

TEST_F(CublasLtTest, RefusesOperandsOtherThanPromised) {
  const OnDevice<float> a(17), d(16);
  auto* const square = Layout(lt::kReal32F, 4, 4);
  ASSERT_EQ(Find(square, square, square), 0);
  const auto run = [&](const float* from) {
    return Multiply(results_.back(), from, square, a.data(), square, d.data(), square);
  };
  EXPECT_EQ(run(a.data() + 1), lt::kNotSupported);
  EXPECT_THAT(Problems().back(), HasSubstr("not at a multiple of 16 bytes, as was promised"));
  SetWish<uint32_t>(lt::kPrefMinAlignmentABytes, 4);
  ASSERT_EQ(Find(square, square, square), 0);
  EXPECT_EQ(run(a.data() + 1), 0);
  EXPECT_EQ(run(a.data() + 2), lt::kExecutionFailed);
  EXPECT_THAT(Problems().back(), HasSubstr("64 bytes at offset 8 of an allocation of 68"));
  lt::HeuristicResult small = results_.front();
  ASSERT_GT(small.workspace_size, 0u);
  small.workspace_size -= 1;
  EXPECT_EQ(Multiply(small, a.data(), square, a.data(), square, d.data(), square),
            lt::kInvalidValue);
  const OnDevice<char> room(results_.front().workspace_size + 256);
  const float alpha = 2, beta = 0;
  for (const size_t offset : {0, 64, 128}) {
    const lt::HeuristicResult& first = results_.front();
    EXPECT_EQ(Lt().Matmul(handle_, desc_, &alpha, a.data(), square, a.data(), square, &beta,
                          d.data(), square, d.data(), square, &first.algo, room.data() + offset,
                          first.workspace_size, stream_),
              offset == 0 ? 0 : lt::kInvalidValue);
  }
  EXPECT_THAT(Problems().back(), HasSubstr("128 bytes behind a multiple of 256 bytes"));
  const lt::HeuristicResult nothing = {};
  EXPECT_EQ(Multiply(nothing, a.data(), square, a.data(), square, d.data(), square),
            lt::kInvalidValue);
}

TEST_F(CublasLtTest, AHandleIsOfTheDeviceThatItWasMadeFor) {
  Reset({.devices = {{}, {}}});
  auto* const square = Layout(lt::kReal32F, 4, 4);
  EXPECT_EQ(Find(square, square, square), 0);
  Cuda().SetDevice(1);
  EXPECT_EQ(Find(square, square, square), lt::kExecutionFailed);
  EXPECT_THAT(Problems(), ElementsAre(HasSubstr("of device 0, and the thread uses device 1")));
  Cuda().SetDevice(0);
}

TEST_F(CublasLtTest, ATestRefusesCallsOrLetsThemFail) {
  auto* const square = Layout(lt::kReal32F, 4, 4);
  RefuseLibraryCalls("cublasLtMatmulAlgo");
  EXPECT_EQ(Find(square, square, square), lt::kNotSupported);
  Reset();
  EXPECT_EQ(Find(square, square, square), 0);
  InjectError(CallKind::kLibrary, 0, lt::kAllocFailed);
  EXPECT_EQ(Find(square, square, square), lt::kAllocFailed);
  EXPECT_EQ(Find(square, square, square), 0);
  EXPECT_EQ(Count().calls_to_libraries, 3);
}

}  // namespace
}  // namespace emulated_gpu

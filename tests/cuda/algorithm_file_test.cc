// The file that stores convolution algorithms, and devices that choose by it.

#include "cuda/conv/algorithm_file.h"

#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <set>

#include "cuda/bindings/cudnn.h"
#include "cuda/conv_run.h"
#include "cuda/gpu_testing.h"
#include "support/log_collector.h"
#include "support/temp_folder.h"
#include "trainer/base/file/file.h"

namespace trainer {
namespace {

using cuda::AlgorithmFile;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Optional;
using testing::StartsWith;

constexpr uint64_t kMax = 1 << 20;

void AddTo(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::app | std::ios::binary) << text;
}

class AlgorithmFileTest : public testing::Test {
 protected:
  AlgorithmFile Open(const std::string& identity = "GPU") const {
    return AlgorithmFile(path_, identity, true);
  }

  TempFolder folder_;
  const std::string path_ = folder_ / "cache/trainer/convolutions";
};

TEST_F(AlgorithmFileTest, WhatOneAddsOthersFind) {
  AlgorithmFile first = Open(), second = Open();
  EXPECT_EQ(first.Find("forward 1"), std::nullopt);
  {
    const AlgorithmFile::Turn turn(first);
    first.Add("forward 1", "6 1 0");
  }
  EXPECT_THAT(first.Find("forward 1"), Optional(std::string("6 1 0")));
  EXPECT_THAT(second.Find("forward 1"), Optional(std::string("6 1 0")));
  EXPECT_EQ(second.Find("forward 2"), std::nullopt);
  EXPECT_EQ(Open("another GPU, or another driver").Find("forward 1"), std::nullopt);
}

TEST_F(AlgorithmFileTest, ADamagedLineIsLeftOutAndTheFileIsMended) {
  {
    AlgorithmFile file = Open();
    const AlgorithmFile::Turn turn(file);
    file.Add("a", "1");
    file.Add("b", "2");
  }
  const std::string whole = ReadFile(path_, kMax);
  std::string damaged = whole;
  damaged[damaged.find("\ta\t1") + 3] = '7';
  std::ofstream(path_, std::ios::binary) << damaged;
  LogCollector log;
  AlgorithmFile file = Open();
  EXPECT_EQ(file.Find("a"), std::nullopt);
  EXPECT_THAT(file.Find("b"), Optional(std::string("2")));
  EXPECT_THAT(log.lines, ElementsAre(HasSubstr("/convolutions: the file is damaged")));
  EXPECT_THAT(ReadFile(path_, kMax), Not(HasSubstr("\ta\t")));
  EXPECT_THAT(Open().Find("b"), Optional(std::string("2")));
  EXPECT_EQ(log.lines.size(), 1u);
}

// A process that is killed while it writes leaves such a line.
TEST_F(AlgorithmFileTest, ALineThatWasCutOffCostsNoOther) {
  {
    AlgorithmFile file = Open();
    const AlgorithmFile::Turn turn(file);
    file.Add("a", "1");
  }
  AddTo(path_, "0123abcd\tGPU\tb");
  LogCollector log;
  AlgorithmFile file = Open();
  EXPECT_THAT(file.Find("a"), Optional(std::string("1")));
  EXPECT_THAT(log.lines, IsEmpty());
  {
    const AlgorithmFile::Turn turn(file);
    file.Add("c", "3");
  }
  AlgorithmFile later = Open();
  EXPECT_THAT(later.Find("c"), Optional(std::string("3")));
  EXPECT_THAT(later.Find("a"), Optional(std::string("1")));
  EXPECT_THAT(log.lines, ElementsAre(HasSubstr("damaged")));
}

TEST_F(AlgorithmFileTest, AnotherFileStaysAsItIs) {
  const std::string path = folder_ / "net.prototxt", text = "name: \"net\"\nlayer {\n}\n";
  AddTo(path, text);
  LogCollector log;
  AlgorithmFile file(path, "GPU", true);
  EXPECT_EQ(file.Find("a"), std::nullopt);
  {
    const AlgorithmFile::Turn turn(file);
    file.Add("a", "1");
  }
  EXPECT_THAT(file.Find("a"), Optional(std::string("1")));
  EXPECT_EQ(ReadFile(path, kMax), text);
  EXPECT_THAT(log.lines, ElementsAre(HasSubstr("this is not a file of convolution algorithms")));
}

TEST_F(AlgorithmFileTest, WithoutAPlaceToWriteItIsInMemoryAlone) {
  LogCollector log;
  AlgorithmFile asked("/dev/null/cache/convolutions", "GPU", true);
  AlgorithmFile usual("/dev/null/cache/convolutions", "GPU", false);
  for (AlgorithmFile* file : {&asked, &usual}) {
    const AlgorithmFile::Turn turn(*file);
    file->Add("a", "1");
    EXPECT_THAT(file->Find("a"), Optional(std::string("1")));
  }
  EXPECT_THAT(log.lines, ElementsAre(HasSubstr("cannot be written: Not a directory")));
}

// Each process notes what it measures; the lock lets only one process measure a key.
TEST_F(AlgorithmFileTest, OfSeveralProcessesOneMeasures) {
  constexpr int kProcesses = 6;
  const std::string measured = folder_ / "measured";
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      AlgorithmFile file = Open();
      for (int key = 0; key < 20; ++key) {
        const std::string name = std::to_string(key);
        if (file.Find(name)) continue;
        const AlgorithmFile::Turn turn(file);
        if (file.Find(name)) continue;
        AddTo(measured, name + "\n");
        file.Add(name, "1");
      }
      _exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  std::ifstream lines(measured);
  EXPECT_EQ(std::count(std::istreambuf_iterator<char>(lines), {}, '\n'), 20);
  AlgorithmFile file = Open();
  for (int key = 0; key < 20; ++key) EXPECT_NE(file.Find(std::to_string(key)), std::nullopt);
}

// Counts how often cuDNN is asked to measure a forward pass.
class MeasuredOnceTest : public EmulatedGpu {
 protected:
  MeasuredOnceTest() : real_(cuda::GetCudnn()) {
    static const cuda::Cudnn* real;
    real = real_;
    changed_ = *real_;
    Measured() = 0;
    changed_.FindConvolutionForwardAlgorithmEx = [](auto... args) {
      ++Measured();
      return real->FindConvolutionForwardAlgorithmEx(args...);
    };
    cuda::SetCudnn(&changed_);
  }
  ~MeasuredOnceTest() override { cuda::SetCudnn(real_); }

  static int& Measured() {
    static int count;
    return count;
  }
  std::unique_ptr<Device> Make(GpuOptions options = {}) const {
    options.algorithm_file = folder_ / "convolutions";
    options.algorithm_file_asked = true;
    return MakeGpuDevice(options);
  }
  ConvDesc desc_ = ImageConv(2, 3, 9, 8, 6, 3, 1, 1);
  TempFolder folder_;
  cuda::Cudnn changed_;

 private:
  const cuda::Cudnn* real_;
};

TEST_F(MeasuredOnceTest, AnotherRunTakesWhatTheFileHas) {
  const std::string first = Make()->NewConv(desc_)->kernel();
  EXPECT_EQ(Measured(), 1);
  const auto again = Make();
  EXPECT_EQ(again->NewConv(desc_)->kernel(), first);
  EXPECT_EQ(Measured(), 1);
  const ConvRun run(desc_);
  EXPECT_LE(ConvRun::Difference(run.On(*again), run.ByReference()), 2e-5f);
  EXPECT_EQ(Measured(), 1);
  desc_.batch = 3;
  (void)again->NewConv(desc_);
  EXPECT_EQ(Measured(), 2);
}

TEST_F(MeasuredOnceTest, AnotherDriverLibraryOrGpuMeasuresAnew) {
  (void)Make()->NewConv(desc_);
  emulated_gpu::Options other;
  other.driver = 13010;
  emulated_gpu::Reset(other);
  (void)Make()->NewConv(desc_);
  EXPECT_EQ(Measured(), 2);
  other.cudnn_version = 92000;
  emulated_gpu::Reset(other);
  (void)Make()->NewConv(desc_);
  EXPECT_EQ(Measured(), 3);
  other.devices[0].name = "Another GPU";
  emulated_gpu::Reset(other);
  (void)Make()->NewConv(desc_);
  (void)Make()->NewConv(desc_);
  EXPECT_EQ(Measured(), 4);
}

TEST_F(MeasuredOnceTest, OptionsThatChangeTheChoiceHaveTheirOwn) {
  (void)Make()->NewConv(desc_);
  (void)Make({.tf32 = true})->NewConv(desc_);
  EXPECT_EQ(Measured(), 2);
  (void)Make({.deterministic = true})->NewConv(desc_);  // measures nothing
  EXPECT_EQ(Measured(), 2);
  EXPECT_THAT(ReadFile(folder_ / "convolutions", kMax), HasSubstr(" deterministic\t"));
}

TEST_F(MeasuredOnceTest, WhatCouldNotBeTriedForLackOfMemoryIsTriedByTheNextRun) {
  desc_.relu = true;
  const auto full = Make();
  emulated_gpu::InjectError(emulated_gpu::CallKind::kMalloc, 1, cuda::kErrorMemoryAllocation);
  EXPECT_THAT(full->NewConv(desc_)->kernel(), HasSubstr("bias and ReLU apart"));
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(Make()->NewConv(desc_)->kernel(), HasSubstr("with bias and ReLU"));
    EXPECT_EQ(Measured(), 2);
  }
}

TEST_F(MeasuredOnceTest, TheWorkspaceOfAFusedCallIsStored) {
  desc_.relu = true;
  emulated_gpu::Options machine;
  machine.fused_workspace = 512;
  emulated_gpu::Reset(machine);
  const ConvRun run(desc_);
  for (int i = 0; i < 2; ++i) {
    const auto gpu = Make();
    EXPECT_THAT(gpu->NewConv(desc_)->kernel(), HasSubstr("with bias and ReLU"));
    EXPECT_LE(ConvRun::Difference(run.On(*gpu), run.ByReference()), 2e-5f);
    EXPECT_EQ(Measured(), 1);
  }
}

// Algorithms take less time on zeros than in training.
TEST_F(MeasuredOnceTest, AlgorithmsAreMeasuredOnFiniteNumbersThatAreNotZero) {
  static const cuda::Cudnn* real;
  real = cuda::GetCudnn();
  static std::vector<float> x, filter;
  x.assign(2 * 3 * 9 * 8, NAN);
  filter.assign(6 * 3 * 3 * 3, NAN);
  cuda::Cudnn looks = *real;
  looks.FindConvolutionForwardAlgorithmEx = [](cuda::cudnn::Handle handle, cuda::Cudnn::Tensor xs,
                                               const void* x_data, cuda::Cudnn::Filter w,
                                               const void* w_data, auto... rest) {
    const int status =
        real->FindConvolutionForwardAlgorithmEx(handle, xs, x_data, w, w_data, rest...);
    emulated_gpu::Peek(x.data(), x_data, x.size() * sizeof(float));
    emulated_gpu::Peek(filter.data(), w_data, filter.size() * sizeof(float));
    return status;
  };
  cuda::SetCudnn(&looks);
  (void)Make()->NewConv(desc_);
  cuda::SetCudnn(&changed_);
  for (const std::vector<float>* values : {&x, &filter}) {
    EXPECT_THAT(*values, testing::Each(testing::AllOf(testing::Ge(-1.0f), testing::Lt(1.0f))));
    const std::set<float> different(values->begin(), values->end());
    EXPECT_GT(different.size(), values->size() / 2);
  }
}

TEST_F(MeasuredOnceTest, WhatDoesNotFitIsChosenAnew) {
  (void)Make()->NewConv(desc_);
  emulated_gpu::Options small;
  small.devices[0].memory_bytes = size_t{1} << 21;
  emulated_gpu::Reset(small);
  const auto device = Make();
  void* const rest = device->Allocate(device->AvailableBytes() - 4096);
  EXPECT_THAT(device->NewConv(desc_)->kernel(), StartsWith("cuDNN algorithm "));
  device->Free(rest);
}

TEST_F(MeasuredOnceTest, AnAlgorithmThatTheLibraryDoesNotKnowIsChosenAnew) {
  (void)Make()->NewConv(desc_);
  const std::string text = ReadFile(folder_ / "convolutions", kMax);
  const size_t line = text.find("\tforward ");
  ASSERT_NE(line, std::string::npos);
  const std::string key = text.substr(line + 1, text.find('\t', line + 1) - line - 1);
  const size_t begin = text.rfind('\n', line) + 1;
  const std::string identity = text.substr(begin + 9, line - begin - 9);
  AlgorithmFile file(folder_ / "convolutions", identity, true);
  {
    const AlgorithmFile::Turn turn(file);
    file.Add(key, "99 0 0");
  }
  EXPECT_THAT(Make()->NewConv(desc_)->kernel(), StartsWith("cuDNN algorithm "));
  EXPECT_EQ(Measured(), 2);
}

}  // namespace
}  // namespace trainer

// --gpu_decode: runs whose pictures nvJPEG decodes, on an emulated GPU, and runs where it cannot.

#include <sstream>

#include "gpu_job.h"
#include "records.h"
#include "support/source_folder.h"
#include "trainer/base/text.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr char kDecoded[] =
    "] JPEG pictures of data/pictures are decoded on the GPU and stay there";

class GpuDecodeRunTest : public EmulatedGpuTest {
 protected:
  void SetUp() override {
    EmulatedGpuTest::SetUp();
    for (int i = 0; i < 2; ++i) {  // for training and for tests
      job_.net = Edited(job_.net, "scale: 0.00390625 }",
                        "crop_size: 7 mirror: true scale: 0.0078125 mean_value: 128 }");
    }
    job_.net = Edited(job_.net, "data/train_lmdb", "data/pictures");
    job_.net = Edited(job_.net, "data/test_lmdb", "data/pictures");
  }

  // Thirty records with these files of tests/golden/images, in turns.
  void MakePictures(const std::vector<std::string>& files) {
    std::string list;
    for (int i = 0; i < 30; ++i) {
      list += files[static_cast<size_t>(i) % files.size()] + " " + std::to_string(i % 10) + "\n";
    }
    WriteText(job_.folder() / "list.txt", list);
    const Outcome made = RunProgram({"dataset", "images", SourceFolder() + "/tests/golden/images",
                                     "list.txt", "data/pictures", "--encoded"},
                                    job_.options());
    ASSERT_EQ(made.exit_code, 0) << made.err;
  }
  void MakeMixedPictures() {
    MakePictures({"waves_full.jpg", "progressive.jpg", "waves_half.jpg", "rgb.png", "rgb.jpg",
                  "waves_across.jpg"});
  }
  // As the net is: where pictures come to the host to be cut.
  void CutOnTheHost() {
    job_.net = Edited(job_.net, "crop_size: 7",
                      "random_erasing_param { probability: 1e-30 } crop_size: 7");
  }
  std::string Weights() const { return ReadText(job_.folder() / "snap_iter_20.caffemodel"); }
  // The losses that the log tells of, of training and of tests.
  static std::vector<std::string> Losses(const std::string& log) {
    std::vector<std::string> losses;
    std::istringstream lines(log);
    for (std::string line; std::getline(lines, line);) {
      const size_t at = line.rfind("loss = ");
      if (at != std::string::npos) losses.push_back(line.substr(at));
    }
    return losses;
  }
  // The weights of a run that ends well, and its log.
  std::string Learned(const std::vector<std::string>& flags, std::string* log = nullptr,
                      const std::string& machine = "") const {
    std::vector<std::string> all = flags;
    all.push_back("--deterministic");
    const Outcome outcome = job_.TrainOnGpu(all, machine);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    if (log != nullptr) *log = outcome.err;
    return Weights();
  }
};

TEST_F(GpuDecodeRunTest, LearnsTheSameWhateverTheNumberOfThreads) {
  MakeMixedPictures();
  std::string log;
  const std::string one = Learned({"--gpu_decode"}, &log);
  EXPECT_THAT(log, HasSubstr(kDecoded));
  // Files of weights and states hold the net, with its threads: losses are compared.
  const std::vector<std::string> losses = Losses(log);
  EXPECT_GT(losses.size(), 4u);
  Learned({"--gpu_decode", "--set", "layer[digits,TRAIN].data_param.threads=3"}, &log);
  EXPECT_EQ(Losses(log), losses);
  const std::string host = Learned({}, &log);
  EXPECT_THAT(log, Not(HasSubstr(kDecoded)));
  EXPECT_FALSE(host == one) << "the emulated decoder rounds otherwise than the host's";
}

TEST_F(GpuDecodeRunTest, GoesOnFromASnapshotOfTheHostAndTheReverse) {
  MakeMixedPictures();
  for (const bool gpu_first : {true, false}) {
    const std::vector<std::string> decode = {"--gpu_decode"}, no;
    Learned(gpu_first ? decode : no);
    std::vector<std::string> more = gpu_first ? no : decode;
    more.push_back("--snapshot=snap_iter_10.solverstate");
    Learned(more);
  }
}

TEST_F(GpuDecodeRunTest, LearnsWhatPicturesTeachThatAreCutOnTheHost) {
  MakeMixedPictures();
  const std::string net = job_.net;
  for (const std::vector<std::string>& flags : {std::vector<std::string>{"--gpu=0"},
                                                {"--gpu=0,1"},
                                                {"--gpu=0", "--set", "virtual_ranks=4"},
                                                {"--gpu=0", "--set", "iter_size=2"}}) {
    const auto losses_of = [&](const std::string& said) {
      std::vector<std::string> all = {"--gpu_decode", "--deterministic"};
      all.insert(all.end(), flags.begin(), flags.end());
      const Outcome outcome = job_.Run(job_.TrainCommand(all), "gpus=2");
      EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
      EXPECT_THAT(outcome.err, HasSubstr(said));
      return Losses(outcome.err);
    };
    const std::vector<std::string> losses = losses_of(kDecoded);
    EXPECT_GT(losses.size(), 4u);
    CutOnTheHost();
    EXPECT_EQ(losses_of(" are decoded on the GPU; the host changes them at random"), losses);
    job_.net = net;
  }
}

TEST_F(GpuDecodeRunTest, AResumedRunIsTheWholeOneBitForBit) {
  MakeMixedPictures();
  const std::string whole = Learned({"--gpu_decode"});
  EXPECT_TRUE(Learned({"--gpu_decode", "--snapshot=snap_iter_10.solverstate"}) == whole);
}

// From some of the net's on to the last one, for the pictures of batches and of decoding threads.
TEST_F(GpuDecodeRunTest, EveryAllocationMayFail) {
  MakeMixedPictures();
  int for_pictures = 0;
  for (int n = 8; n < 80; n += 3) {
    SCOPED_TRACE(n);
    const Outcome outcome =
        job_.TrainOnGpu({"--gpu_decode", "--set", "max_iter=2", "--set", "test_interval=0"},
                        Join("fail=malloc:", n, ":2"));
    if (outcome.exit_code == 0) break;  // there are not so many
    ExpectRefused(job_, outcome, 81, "", "lower batch_size");
    for_pictures += outcome.err.find("for pictures that it decodes") != std::string::npos ? 1 : 0;
  }
  EXPECT_GT(for_pictures, 1);
}

TEST_F(GpuDecodeRunTest, AGpuLostOnTheWayLeavesTheLastSnapshot) {
  MakeMixedPictures();
  job_.solver = Edited(job_.solver, "max_iter: 20", "max_iter: 1000");
  job_.solver = Edited(job_.solver, "test_interval: 10", "test_interval: 1000");
  job_.solver = Edited(job_.solver, "snapshot: 10", "snapshot: 5");
  for (const char* fault : {"launch:900:700", "copy:400:700"}) {
    SCOPED_TRACE(fault);
    const Outcome lost = job_.TrainOnGpu({"--gpu_decode"}, std::string("break=") + fault);
    ExpectRefused(job_, lost, 69, "GPU 0 (Emulated GPU) failed while ", "cudaErrorIllegalAddress");
    EXPECT_FALSE(job_.Files("snap").empty()) << lost.err;
    const Outcome again = job_.TrainOnGpu({"--gpu_decode", "--resume=auto", "--set", "max_iter=1"});
    EXPECT_EQ(again.exit_code, 0) << again.err;
    EXPECT_THAT(again.err, HasSubstr("Already at iteration"));
  }
}

TEST_F(GpuDecodeRunTest, WithoutTheLibraryTheHostDecodesAfterAWarning) {
  MakeMixedPictures();
  const std::string host = Learned({});
  std::string log;
  EXPECT_TRUE(Learned({"--gpu_decode"}, &log, "nvjpeg=0") == host);
  const std::string said = "] --gpu_decode: nvJPEG 12 or 13 was not found ";
  ASSERT_THAT(log, AllOf(HasSubstr(said), HasSubstr("Until then the host decodes all pictures")));
  EXPECT_EQ(log.find(said), log.rfind(said));
  EXPECT_THAT(log, Not(HasSubstr(kDecoded)));
}

TEST_F(GpuDecodeRunTest, ProgressivePicturesAreThoseOfTheHost) {
  MakePictures({"progressive.jpg"});
  const std::string host = Learned({});
  EXPECT_TRUE(Learned({"--gpu_decode"}) == host);
}

TEST_F(GpuDecodeRunTest, ABadRecordEndsTheRunAsOnTheHostOrIsSkipped) {
  MakeMixedPictures();
  caffe::Datum bad;
  bad.set_encoded(true);
  bad.set_label(1);
  const std::string whole = ReadText(SourceFolder() + "/tests/golden/images/waves_full.jpg");
  bad.set_data(whole.substr(0, whole.size() / 2));
  PutRecord(job_, "data/pictures", 8, bad.SerializeAsString());
  const Outcome host = job_.TrainOnGpu(), gpu = job_.TrainOnGpu({"--gpu_decode"});
  ExpectRefused(job_, gpu, 65, "data/pictures: record '", "");
  EXPECT_EQ(gpu.Errors(), host.Errors());
  std::string log;
  Learned({"--gpu_decode", "--bad_records=skip=1"}, &log);
  EXPECT_THAT(log, AllOf(HasSubstr(kDecoded), HasSubstr("skipped record number 8 ")));
}

TEST_F(GpuDecodeRunTest, PixelsNeedNoDecoding) {
  const GpuJob digits;
  ASSERT_EQ(digits.TrainOnGpu({"--deterministic"}).exit_code, 0);
  const std::string weights = ReadText(digits.folder() / "snap_iter_20.caffemodel");
  const Outcome asked = digits.TrainOnGpu({"--gpu_decode", "--deterministic"});
  ASSERT_EQ(asked.exit_code, 0) << asked.err;
  EXPECT_THAT(asked.err, HasSubstr("] --gpu_decode has no effect on data/train_lmdb: its records "
                                   "hold pixels, not encoded pictures"));
  EXPECT_TRUE(ReadText(digits.folder() / "snap_iter_20.caffemodel") == weights);
}

TEST_F(GpuDecodeRunTest, OnTheCpuTheFlagSaysThatItHasNoEffect) {
  MakeMixedPictures();
  const Outcome cpu = job_.Train({"--gpu_decode"});
  ASSERT_EQ(cpu.exit_code, 0) << cpu.err;
  const std::string weights = Weights();
  EXPECT_THAT(cpu.err, HasSubstr("] --gpu_decode has no effect on the CPU"));
  EXPECT_EQ(job_.Train().exit_code, 0);
  EXPECT_TRUE(Weights() == weights);
}

}  // namespace
}  // namespace trainer

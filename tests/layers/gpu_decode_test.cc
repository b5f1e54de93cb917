// Data layers whose pictures a GPU decodes, against those of the host.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "data/test_data.h"
#include "support/error_of.h"
#include "support/golden.h"
#include "support/log_collector.h"
#include "support/net_text.h"
#include "trainer/backend/gpu.h"
#include "trainer/base/text.h"
#include "trainer/data/bad_records.h"
#include "trainer/image/jpeg_unit.h"
#include "trainer/net/states.h"

namespace trainer {
namespace {

using testing::Contains;
using testing::HasSubstr;

constexpr int kRecords = 11, kBatch = 4;

class GpuDecodeTest : public testing::Test {
 protected:
  void SetUp() override {
    if (FindGpus().gpus.empty()) GTEST_SKIP() << "there is no GPU, not even an emulated one";
    GpuOptions options;
    options.decode_jpegs = true;
    gpu_ = MakeGpuDevice(options);
    if (!dynamic_cast<DecodesJpegs&>(*gpu_).HasJpegUnits()) GTEST_SKIP() << "nvJPEG is not there";
    cpu_ = MakeCpuDevice(2);
  }
  ~GpuDecodeTest() override { SkipBadRecords(-1); }

  // JPEG of every sampling, a progressive one, PNG; some in place of others.
  std::string Database(const std::map<int, std::string>& others = {},
                       const std::string& name = "db") {
    constexpr const char* kNames[] = {"waves_full.jpg",     "waves_half.jpg", "rgb.png",
                                      "waves_restarts.jpg", "rgb.jpg",        "waves_across.jpg",
                                      "progressive.jpg"};
    Records records;
    for (int i = 0; i < kRecords; ++i) {
      const auto other = others.find(i);
      caffe::Datum datum;
      datum.set_encoded(true);
      datum.set_label(i);
      datum.set_data(other != others.end() ? other->second : Picture(kNames[i % 7]));
      records.emplace_back(Key8(i), datum.SerializeAsString());
    }
    const std::string path = folder_ / name;
    WriteDb("LMDB", path, records);
    return path;
  }
  static std::string NetOf(const std::string& database, const std::string& transform,
                           const std::string& data = "") {
    return Join("layer { name: 'd' type: 'Data' top: 'x' top: 'y' transform_param { ", transform,
                " } data_param { backend: LMDB batch_size: ", kBatch, " ", data, " source: '",
                database, "' } }");
  }

  struct Made {
    Made(const std::string& text, const Device& device) : spec(NetFromText(text)), params(device) {
      NetOptions options;
      options.state = StateOf(caffe::TRAIN);
      options.seed = 3;
      options.log = false;
      options.training = true;
      net = std::make_unique<Net>(spec, options, device, params);
    }
    std::vector<float> Next() {
      net->Forward();
      return Read("x");
    }
    std::vector<float> Read(const char* top) const {
      const Tensor value = net->Value(top);
      std::vector<float> host(static_cast<size_t>(value.Count()));
      net->ReadPlain(value, host);
      return host;
    }

    NetSpec spec;
    ParamStore params;
    std::unique_ptr<Net> net;
  };

  // That batches are alike within two levels, and not all the same; how many numbers are not.
  static int ExpectAlike(Made* host, Made* gpu, int batches, float scale = 1) {
    int unlike = 0;
    for (int batch = 0; batch < batches; ++batch) {
      const std::vector<float> expected = host->Next(), got = gpu->Next();
      EXPECT_EQ(expected.size(), got.size());
      float most = 0;
      for (size_t i = 0; i < got.size(); ++i) {
        most = std::max(most, std::abs(got[i] - expected[i]));
        unlike += got[i] != expected[i];
      }
      EXPECT_LE(most, 2.001f * scale) << "batch " << batch;
      EXPECT_EQ(host->Read("y"), gpu->Read("y"));
    }
    return unlike;
  }

  TempFolder folder_;
  std::unique_ptr<Device> gpu_, cpu_;
};

TEST_F(GpuDecodeTest, BatchesAreThoseOfTheHostWithinTwoLevels) {
  const std::string database = Database();
  const std::string transforms[] = {
      "crop_size: 6 mirror: true", "crop_size: 6 force_gray: true scale: 0.5",
      "crop_size: 5 mean_value: 104 mean_value: 117 mean_value: 123 force_color: true",
      "crop_size: 6 mixup: 1 mixup_classes: 11"};
  for (const std::string& transform : transforms) {
    for (const char* data : {"", "shuffle: true", "threads: 3"}) {
      const std::string text = NetOf(database, transform, data);
      Made host(text, *cpu_), gpu(text, *gpu_);
      EXPECT_GT(ExpectAlike(&host, &gpu, 5), 0) << "the GPU decoded nothing, " << transform;
    }
  }
}

TEST_F(GpuDecodeTest, ARunThatIsResumedWithinAnEpochGoesOnBitForBit) {
  const std::string text = NetOf(Database(), "crop_size: 6 mirror: true", "shuffle: true");
  Made whole(text, *gpu_), first(text, *gpu_), second(text, *gpu_);
  for (int batch = 0; batch < 4; ++batch) EXPECT_EQ(first.Next(), whole.Next());
  Restore(*second.net, 4, SaveLayerStates(*first.net));
  for (int batch = 0; batch < 5; ++batch) EXPECT_EQ(second.Next(), whole.Next());
}

TEST_F(GpuDecodeTest, TheNumberOfThreadsChangesNothing) {
  const std::string database = Database();
  Made one(NetOf(database, "crop_size: 6", "threads: 1"), *gpu_);
  Made four(NetOf(database, "crop_size: 6", "threads: 4"), *gpu_);
  for (int batch = 0; batch < 6; ++batch) EXPECT_EQ(one.Next(), four.Next());
}

TEST_F(GpuDecodeTest, ABadRecordEndsTheRunAsOnTheHost) {
  const std::string good = Picture("waves_half.jpg");
  std::string no_table = good;
  no_table[no_table.find("\xff\xc4") + 5] = '\x7f';
  const std::string bad[] = {good.substr(0, good.size() - 40), no_table, "no picture", ""};
  for (size_t i = 0; i < std::size(bad); ++i) {
    const std::string text = NetOf(Database({{5, bad[i]}}, Join("bad", i)), "crop_size: 6");
    Made host(text, *cpu_), gpu(text, *gpu_);
    ExpectAlike(&host, &gpu, 1);
    const auto error = ErrorOf([&] { host.Next(); });
    EXPECT_THAT(error.second, HasSubstr("record '00000005'"));
    EXPECT_EQ(ErrorOf([&] { gpu.Next(); }), error);
  }
}

TEST_F(GpuDecodeTest, TheNextGoodRecordComesInThePlaceOfABadOneAsOnTheHost) {
  SkipBadRecords(100);
  const std::string good = Picture("waves_half.jpg");
  std::string no_table = good;
  no_table[no_table.find("\xff\xc4") + 5] = '\x7f';
  const std::string database = Database({{1, good.substr(0, good.size() - 40)}, {6, no_table}});
  for (const char* data : {"", "threads: 3"}) {
    const std::string text = NetOf(database, "crop_size: 6 mirror: true", data);
    Made host(text, *cpu_), gpu(text, *gpu_);
    EXPECT_GT(ExpectAlike(&host, &gpu, 6), 0);
  }
}

TEST_F(GpuDecodeTest, PicturesThatAreResizedAtRandomStayOnTheHost) {
  const LogCollector log;
  const std::string text =
      NetOf(Database(), "crop_size: 5 random_resized_crop_param { min_area_ratio: 0.5 }");
  Made host(text, *cpu_), gpu(text, *gpu_);
  EXPECT_EQ(ExpectAlike(&host, &gpu, 3), 0);
  EXPECT_THAT(log.lines, Contains(HasSubstr(": of pictures that are resized at random ")));
}

TEST_F(GpuDecodeTest, FilesOfAListStayOnTheHost) {
  const LogCollector log;
  WriteBytes(folder_ / "a.jpg", Picture("rgb.jpg"));
  WriteBytes(folder_ / "list", "a.jpg 0\n");
  Made gpu("layer { name: 'd' type: 'ImageData' top: 'x' top: 'y' image_data_param { source: '" +
               (folder_ / "list") + "' root_folder: '" + (folder_ / "") + "' batch_size: 2 } }",
           *gpu_);
  gpu.Next();
  EXPECT_THAT(log.lines, Contains(HasSubstr(": each picture is in a file of its own; ")));
}

}  // namespace
}  // namespace trainer

// Data layers whose pictures stay on the GPU that decodes them, against those whose pictures come
// to the host to be cut: the same numbers bit for bit.

#ifdef TRAINER_CUDA_EMULATED

#include <emulated_gpu.h>

#include "layers/gpu_decode_testing.h"
#include "support/error_of.h"
#include "support/log_collector.h"
#include "support/test_device.h"
#include "trainer/data/batch.h"
#include "trainer/net/states.h"

namespace trainer {
namespace {

using testing::Contains;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;

// On machines of its own: what other tests have on theirs is not looked at.
class GpuDecodeCutsTest : public GpuDecodeTest {
 protected:
  void SetUp() override {
    if (TestsOnGpu()) GTEST_SKIP() << "the tests of this process share a GPU";
    GpuDecodeTest::SetUp();
  }
  ~GpuDecodeCutsTest() override {
    if (TestsOnGpu()) return;
    gpu_.reset();
    EXPECT_THAT(emulated_gpu::Problems(), IsEmpty());
    EXPECT_THAT(emulated_gpu::Leaks(), IsEmpty());
    emulated_gpu::Reset();
  }

  // What has pictures come to the host: a change that is as good as never made, and that changes
  // nothing else that is drawn.
  static std::string OverTheHost(const std::string& transform) {
    return transform + " random_erasing_param { probability: 1e-30 }";
  }
  void OnMachine(const emulated_gpu::NvjpegOptions& nvjpeg) {
    gpu_.reset();
    emulated_gpu::Options options;
    options.nvjpeg = nvjpeg;
    emulated_gpu::Reset(options);
    SetUp();
  }
  void ExpectTheSame(const std::string& database, const std::string& transform,
                     const std::string& data, int batches = 6) {
    SCOPED_TRACE(Join(transform, ", ", data));
    Made host(NetOf(database, OverTheHost(transform), data), *gpu_),
        cut(NetOf(database, transform, data), *gpu_);
    for (int batch = 0; batch < batches; ++batch) {
      const std::vector<float> expected = host.Next();
      EXPECT_EQ(cut.Next(), expected) << "batch " << batch;
      EXPECT_EQ(cut.Read("y"), host.Read("y")) << "batch " << batch;
    }
  }
};

TEST_F(GpuDecodeCutsTest, NumbersAreThoseOfPicturesThatAreCutOnTheHost) {
  const std::string database = Database();
  uint64_t seed = 0;
  for (const char* transform :
       {"crop_size: 6 mirror: true", "crop_size: 6 force_gray: true scale: 0.5",
        "crop_h: 5 crop_w: 7 mean_value: 104 mean_value: 117 mean_value: 123 force_color: true",
        "crop_size: 6 mirror: true mixup: 1 mixup_classes: 11"}) {
    for (const char* data : {"", "shuffle: true threads: 1", "threads: 3", "prefetch: 1"}) {
      emulated_gpu::SetSeed(++seed);
      ExpectTheSame(database, transform, data);
    }
  }
}

TEST_F(GpuDecodeCutsTest, AMeanImageIsThatOfTheWindow) {
  std::map<int, std::string> waves;
  for (int i = 0; i < kRecords; ++i) {
    waves[i] = Picture(i % 2 == 0 ? "waves_full.jpg" : "waves_half.jpg");
  }
  caffe::BlobProto mean;
  for (const int dim : {1, 3, 75, 101}) mean.mutable_shape()->add_dim(dim);
  for (int i = 0; i < 3 * 75 * 101; ++i) mean.add_data(static_cast<float>(i % 211) * 0.7f);
  WriteBytes(folder_ / "mean", mean.SerializeAsString());
  const std::string transform = "mean_file: '" + (folder_ / "mean") + "' scale: 0.25 mirror: true ";
  const std::string database = Database(waves);
  for (const char* crop : {"", "crop_size: 31"}) {
    ExpectTheSame(database, transform + crop, "");
  }
}

TEST_F(GpuDecodeCutsTest, TheLogSaysWhetherPicturesStay) {
  const std::string database = Database();
  const LogCollector log;
  Made stays(NetOf(database, "crop_size: 6"), *gpu_);
  EXPECT_THAT(log.lines, Contains(EndsWith(" are decoded on the GPU and stay there")));
  Made comes(NetOf(database, OverTheHost("crop_size: 6")), *gpu_);
  EXPECT_THAT(log.lines,
              Contains(EndsWith(" are decoded on the GPU; the host changes them at random")));
}

TEST_F(GpuDecodeCutsTest, WhatTheLibraryLeavesOutTheHostDecodesInItsPlace) {
  OnMachine({.leaves_out = 1});
  ExpectTheSame(Database(), "crop_size: 6 mirror: true", "threads: 1");
}

TEST_F(GpuDecodeCutsTest, BadRecordsAreReplacedAlike) {
  SkipBadRecords(100);
  const std::string good = Picture("waves_half.jpg");
  std::string no_table = good;
  no_table[no_table.find("\xff\xc4") + 5] = '\x7f';
  const std::string database =
      Database({{1, good.substr(0, good.size() - 40)}, {6, no_table}, {8, "no picture"}});
  for (const char* data : {"threads: 1", "threads: 3"}) {
    ExpectTheSame(database, "crop_size: 6 mirror: true", data);
  }
}

// It is not even decoded: its window would be outside of it.
TEST_F(GpuDecodeCutsTest, ARecordThatIsTooSmallIsRefusedAsOnTheHost) {
  constexpr int kSmall = 5;
  std::map<int, std::string> pictures;
  for (int i = 0; i < kRecords; ++i) pictures[i] = Picture("waves_full.jpg");
  pictures[kSmall] = EncodeImage({3, 5, 9, std::vector<uint8_t>(3 * 5 * 9, 7)}, "jpg");
  const std::string text = NetOf(Database(pictures), "crop_size: 6", "threads: 1");
  Made host(text, *cpu_), gpu(text, *gpu_);
  emulated_gpu::ResetCounters();
  ExpectAlike(&host, &gpu, 1);
  const auto error = ErrorOf([&] { host.Next(); });
  EXPECT_THAT(error.second,
              HasSubstr("a crop of 6x6 is larger than record '00000005', which is 3x5x9"));
  EXPECT_EQ(ErrorOf([&] { gpu.Next(); }), error);
  EXPECT_EQ(emulated_gpu::Count().decoded_pictures, 2 * kBatch - 1);
}

TEST_F(GpuDecodeCutsTest, ATestNetHasAllItsCrops) {
  const std::string text = NetOf(Database(), "crop_size: 6 test_crops: 10");
  Made host(text, *cpu_, caffe::TEST), gpu(text, *gpu_, caffe::TEST);
  const LogCollector log;
  int unlike = 0;
  for (int batch = 0; batch < 4; ++batch) {
    const std::vector<float> expected = host.Next(), got = gpu.Next();
    ASSERT_EQ(got.size(), size_t{kBatch} * 10 * 3 * 6 * 6);
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_NEAR(got[i], expected[i], 2) << "batch " << batch << ", element " << i;
      unlike += got[i] != expected[i];
    }
    // The second five are the first ones mirrored; (N, C, H, W).
    constexpr size_t kRow = 6, kCrop = 3 * 6 * kRow;
    for (size_t i = 0; i < got.size(); ++i) {
      const size_t crop = i / kCrop % 10, column = i % kRow;
      if (crop >= 5) continue;
      ASSERT_EQ(got[i], got[i + 5 * kCrop + kRow - 1 - 2 * column]) << "element " << i;
    }
    EXPECT_EQ(gpu.Read("y"), host.Read("y"));
  }
  EXPECT_GT(unlike, 0) << "the GPU decoded nothing";
}

TEST_F(GpuDecodeCutsTest, PartsOfABatchAreThoseOfSoManyReplicas) {
  const std::string text =
      NetOf(Database(), "crop_size: 6 mirror: true mixup: 1 mixup_classes: 11", "shuffle: true");
  Made together(text, *gpu_, caffe::TRAIN, {2, 4}, 2);
  Made alone[] = {{text, *gpu_, caffe::TRAIN, {2, 4}}, {text, *gpu_, caffe::TRAIN, {3, 4}}};
  for (int pass = 0; pass < 5; ++pass) {
    for (int part = 0; part < 2; ++part) {
      together.net->SetPart(part);
      EXPECT_EQ(together.Next(), alone[part].Next()) << "pass " << pass << ", part " << part;
      EXPECT_EQ(together.Read("y"), alone[part].Read("y"));
    }
  }
}

TEST_F(GpuDecodeCutsTest, ARunThatIsResumedOverTheHostGoesOnBitForBit) {
  const std::string database = Database();
  const std::string transform = "crop_size: 6 mirror: true";
  const std::string over_host = NetOf(database, OverTheHost(transform), "shuffle: true"),
                    stays = NetOf(database, transform, "shuffle: true");
  for (const bool host_first : {true, false}) {
    Made whole(stays, *gpu_), first(host_first ? over_host : stays, *gpu_),
        second(host_first ? stays : over_host, *gpu_);
    for (int batch = 0; batch < 4; ++batch) EXPECT_EQ(first.Next(), whole.Next());
    Restore(*second.net, 4, SaveLayerStates(*first.net));
    for (int batch = 0; batch < 5; ++batch) EXPECT_EQ(second.Next(), whole.Next());
  }
}

TEST_F(GpuDecodeCutsTest, OnlyPixelsThatTheHostMadeGoUp) {
  constexpr int64_t kCrop = 60, kPixels = 3 * kCrop * kCrop;
  const std::string crop = Join("crop_size: ", kCrop);
  const std::string jpeg = Picture("waves_full.jpg");
  std::map<int, std::string> all;
  for (int i = 0; i < kRecords; ++i) all[i] = jpeg;
  std::map<int, std::string> one_png = all;
  one_png[4] = EncodeImage({3, 75, 101, std::vector<uint8_t>(3 * 75 * 101, 9)}, "png");
  const auto bytes_of = [&](const std::map<int, std::string>& records, const std::string& name,
                            const std::string& transform) {
    const std::string text = NetOf(Database(records, name), transform, "threads: 1 prefetch: 1");
    emulated_gpu::ResetCounters();
    {
      Made made(text, *gpu_);
      for (int batch = 0; batch < 11; ++batch) made.net->Forward();
    }
    return emulated_gpu::Count();
  };
  // 11 batches of 4 are 4 epochs; up to three more are read ahead.
  const auto stays = bytes_of(all, "stays", crop), mixed = bytes_of(one_png, "mixed", crop),
             comes = bytes_of(all, "comes", OverTheHost(crop));
  const int64_t per_image =
      128;  // its window, its label, where it is to be cut, whether it is there
  EXPECT_LT(stays.bus_bytes, 14 * kBatch * per_image + 4096);
  EXPECT_GE(stays.copied_bytes - stays.bus_bytes, 11 * kBatch * kPixels);
  EXPECT_GE(mixed.bus_bytes, 4 * kPixels);
  EXPECT_LT(mixed.bus_bytes, 14 * kBatch * per_image + 4096 + 6 * kPixels);
  EXPECT_GT(comes.bus_bytes, 11 * kBatch * (3 * 75 * 101 + kPixels))
      << "pictures come and crops go";
  EXPECT_EQ(comes.copied_bytes, comes.bus_bytes);
}

TEST_F(GpuDecodeCutsTest, AGpuWithoutMemoryForBatchesSaysSo) {
  const std::string text = NetOf(Database(), "crop_size: 6", "threads: 1 prefetch: 2");
  for (int call = 0; call < 5; ++call) {
    Made made(text, *gpu_);
    emulated_gpu::InjectError(emulated_gpu::CallKind::kMalloc, call, 2);
    const auto error = ErrorOf([&] {
      for (int batch = 0; batch < 3; ++batch) made.Next();
    });
    EXPECT_EQ(error.first, ErrorCode::kResource) << call;
    EXPECT_THAT(error.second, HasSubstr("lower batch_size or data_param's prefetch, or decode on "
                                        "the host: --nogpu_decode"));
  }
}

}  // namespace
}  // namespace trainer

#endif

// Tests batches that are copied to a device while it computes on the previous one. They are copied
// as bytes if they are stored as bytes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "storage/test_data.h"
#include "support/error_of.h"
#include "support/late_device.h"
#include "support/net_text.h"
#include "trainer/backend/device/cpu_device.h"
#include "trainer/base/text/text.h"
#include "trainer/input/batch.h"
#include "trainer/layers/data_layer.h"
#include "trainer/net/layer_state.h"

namespace trainer {
namespace {

using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::StartsWith;

constexpr int kRecords = 7, kBatch = 3, kHeight = 5, kWidth = 6;

std::string Pixels(int channels, int record) {
  std::string pixels;
  for (int i = 0; i < channels * kHeight * kWidth; ++i) {
    pixels += static_cast<char>(record * 37 + i * 11);
  }
  return pixels;
}

class DataAheadTest : public testing::Test {
 protected:
  // Writes a database of records with this many channels. `changed` replaces some of them.
  std::string Database(int channels, const std::map<int, std::string>& changed = {}) {
    const std::string path = folder_ / Join("db", channels, "_", changed.size());
    if (std::filesystem::exists(path)) return path;
    Records records;
    for (int k = 0; k < kRecords; ++k) {
      const auto other = changed.find(k);
      records.emplace_back(
          Key8(k),
          other != changed.end()
              ? other->second
              : MakeDatum(channels, kHeight, kWidth, Pixels(channels, k), k).SerializeAsString());
    }
    WriteDb("LMDB", path, records);
    return path;
  }

  // Writes a mean file with arbitrary values.
  std::string MeanFile(int channels) {
    caffe::BlobProto mean;
    for (const int dim : {1, channels, kHeight, kWidth}) mean.mutable_shape()->add_dim(dim);
    for (int i = 0; i < channels * kHeight * kWidth; ++i) {
      mean.add_data(static_cast<float>(i * 7 % 101) + 0.1f * static_cast<float>(i));
    }
    const std::string path = folder_ / Join("mean", channels, ".binaryproto");
    WriteBytes(path, mean.SerializeAsString());
    return path;
  }

  static std::string NetText(const std::string& database, const std::string& transform) {
    return Join("layer { name: 'd' type: 'Data' top: 'x' top: 'y' transform_param { ", transform,
                " } data_param { backend: LMDB batch_size: ", kBatch, " source: '", database,
                "' } }");
  }

  TempFolder folder_;
};

// A net of one data layer.
struct MadeDataAhead {
  MadeDataAhead(const std::string& text, const Device& device, caffe::Phase phase = caffe::TRAIN,
                Rank rank = {}, int parts = 1)
      : spec(NetFromText(text)), params(device) {
    NetOptions options;
    options.state = StateOf(phase);
    options.seed = 4;
    options.log = false;
    options.rank = rank;
    options.virtual_ranks = parts;
    options.training = phase == caffe::TRAIN;
    net = std::make_unique<Net>(spec, options, device, params);
  }

  // Returns the values of the next batch, labels last.
  std::vector<float> Next(int virtual_rank = 0) {
    net->Run({.mode = Pass::Mode::kForward, .virtual_rank = virtual_rank});
    net->TakeLoss();
    std::vector<float> values;
    for (const char* top : {"x", "y"}) {
      const Tensor value = net->Value(top);
      std::vector<float> host(static_cast<size_t>(value.Count()));
      net->ReadNchw(value, host);
      values.insert(values.end(), host.begin(), host.end());
    }
    return values;
  }

  std::string State() const { return SaveLayerStates(*net).at(0).bytes; }
  std::vector<size_t> Staged() const {
    std::vector<size_t> bytes;
    for (const Buffer& block : net->graph().memory.buffers) {
      if (block.kind == BufferKind::kUpload) bytes.push_back(block.bytes);
    }
    return bytes;
  }

  NetSpec spec;
  ParamStore params;
  std::unique_ptr<Net> net;
};

TEST_F(DataAheadTest, BatchesAreThoseOfTheHostBitForBit) {
  const auto cpu = MakeCpuDevice(2), tests = MakeTestDevice(2);
  for (const int channels : {1, 2, 3}) {
    const std::string mean_file = Join("mean_file: '", MeanFile(channels), "' scale: 0.3 ");
    const std::string transforms[] = {
        "",
        "scale: 0.00390625 ",
        "mean_value: 33.3 scale: 0.017 ",
        "mean_value: 33.3 crop_size: 4 mirror: true ",
        mean_file,
        mean_file + "crop_size: 3 ",
        mean_file + "crop_size: 4 mirror: true ",
        mean_file + "mirror: true ",
        "mixup: 0.4 mixup_classes: 7 mean_value: 33.3 scale: 0.017 ",
        "random_erasing_param { probability: 0.7 } mirror: true scale: 0.1 ",
        mean_file + "mixup: 1 mixup_classes: 7 crop_size: 4 mirror: true ",
        "cutmix: 1 mixup_classes: 7 mean_value: 33.3 scale: 0.017 ",
        mean_file + "cutmix: 1 mixup: 0.4 mixup_classes: 7 crop_size: 4 mirror: true ",
        "vflip: 0.5 random_affine_param { degrees: 20 } gaussian_blur_param { } scale: 0.1 ",
        channels == 3 ? "color_jitter_param { brightness: 0.5 hue: 0.1 } lighting: 0.3 " : "",
        channels == 3 ? "mean_value: 1.5 mean_value: 2.25 mean_value: 100.7 mirror: true " : ""};
    for (const std::string& transform : transforms) {
      for (const caffe::Phase phase : {caffe::TRAIN, caffe::TEST}) {
        const std::string text = NetText(Database(channels), transform);
        const LateDevice with_bytes(true), with_floats(false);
        MadeDataAhead host(text, *cpu, phase), tested(text, *tests, phase),
            bytes(text, with_bytes, phase), floats(text, with_floats, phase);
        for (int pass = 0; pass < 6; ++pass) {
          const std::vector<float> expected = host.Next();
          EXPECT_EQ(tested.Next(), expected) << channels << " channels, " << transform;
          EXPECT_EQ(bytes.Next(), expected) << channels << " channels, " << transform;
          EXPECT_EQ(floats.Next(), expected) << channels << " channels, " << transform;
        }
      }
    }
  }
}

TEST_F(DataAheadTest, PartsOfABatchAreThoseOfSoManyReplicas) {
  const std::string text = NetText(
      Database(3), Join("mean_file: '", MeanFile(3),
                        "' crop_size: 4 mirror: true mixup: 1 cutmix: 1 mixup_classes: 7 "));
  const auto cpu = MakeCpuDevice(2), tests = MakeTestDevice(2);
  const LateDevice with_bytes(true), with_floats(false);
  const Device* const devices[] = {cpu.get(), tests.get(), &with_bytes, &with_floats};
  for (const Device* device : devices) {
    MadeDataAhead together(text, *device, caffe::TRAIN, {2, 4}, 2);
    MadeDataAhead alone[] = {{text, *cpu, caffe::TRAIN, {2, 4}},
                             {text, *cpu, caffe::TRAIN, {3, 4}}};
    for (int pass = 0; pass < 5; ++pass) {
      for (int part = 0; part < 2; ++part) {
        EXPECT_EQ(together.Next(part), alone[part].Next())
            << device->Describe() << ", pass " << pass;
      }
      EXPECT_EQ(together.State(), alone[0].State());
    }
    DataLayer& source = *together.net->graph().nodes[NodeId(0)].layer->data_layer();
    DataLayer& own = *alone[1].net->graph().nodes[NodeId(0)].layer->data_layer();
    EXPECT_EQ(source.RecordName(1, 0), own.RecordName(1, 0));
  }
}

TEST_F(DataAheadTest, APositionIsThatAfterTheBatchWhichWasUsed) {
  const auto cpu = MakeCpuDevice(2);
  const std::string text = NetText(Database(3), "mirror: true");
  const LateDevice device;
  MadeDataAhead host(text, *cpu), ahead(text, device);
  EXPECT_EQ(ahead.State(), host.State());
  for (int pass = 0; pass < 5; ++pass) {
    host.Next();
    ahead.Next();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // meanwhile the next batch is read
    EXPECT_EQ(ahead.State(), host.State()) << "after pass " << pass;
  }
  MadeDataAhead resumed(text, device);
  Restore(*resumed.net, 5, SaveLayerStates(*ahead.net));
  EXPECT_EQ(resumed.State(), host.State());
  EXPECT_EQ(resumed.Next(), host.Next());
}

TEST_F(DataAheadTest, ABadRecordEndsThePassThatItBelongsTo) {
  const auto cpu = MakeCpuDevice(2);
  const std::string text = NetText(Database(1, {{6, "no datum"}}), "");
  const LateDevice device;
  MadeDataAhead host(text, *cpu), ahead(text, device);
  for (int pass = 0; pass < 2; ++pass) {
    EXPECT_EQ(ahead.Next(), host.Next());
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // the threads have reached it
  }
  const auto error = ErrorOf([&] { host.Next(); });
  EXPECT_THAT(error.second, HasSubstr("record '00000006'"));
  EXPECT_EQ(ErrorOf([&] { ahead.Next(); }), error);
}

TEST_F(DataAheadTest, NamesTheItemsOfTheLastTwoBatchesOfPasses) {
  const LateDevice device;
  for (const uint32_t ago : {0u, 1u}) {
    MadeDataAhead ahead(NetText(Database(1), ""), device);
    for (int pass = 0; pass < 4; ++pass) ahead.Next();
    DataLayer* const names = ahead.net->graph().nodes[NodeId(0)].layer->data_layer();
    ASSERT_NE(names, nullptr);
    // Pass 3 reads records 9, 10 and 11, which wrap around to 2, 3 and 4.
    EXPECT_THAT(names->RecordName(1, ago),
                StartsWith(ago == 0 ? "record '00000003'" : "record '00000000'"));
  }
}

// No pass runs while the first batch is copied. Later, if the threads are fast enough, a batch is
// in flight when a pass begins, and no pass waits for its own work.
TEST_F(DataAheadTest, ABatchIsCopiedDuringThePassBefore) {
  const LateDevice device;
  MadeDataAhead ahead(NetText(Database(3), ""), device);
  ahead.Next();
  std::chrono::milliseconds pause(1);  // grows until the threads are fast enough
  for (int pass = 0, copied_ahead = 0; copied_ahead < 10; ++pass) {
    ASSERT_LT(pause, std::chrono::minutes(2)) << copied_ahead << " of " << pass << " batches";
    std::this_thread::sleep_for(pause);
    const bool on_its_way = device.unfinished > 0;
    if (on_its_way) {
      ++copied_ahead;
    } else if (pass > 0) {
      pause *= 2;
    }
    device.NewStep();
    ahead.net->Run({.mode = Pass::Mode::kForward});
    if (on_its_way) {
      EXPECT_EQ(device.waits, 0) << "pass " << pass;
    }
    EXPECT_EQ(device.direct_copies, 0);
    EXPECT_EQ(device.allocations, 0);
    ahead.net->TakeLoss();
  }
}

TEST_F(DataAheadTest, BytesGoUpAsBytes) {
  constexpr size_t kPixels = size_t{kBatch} * 3 * kHeight * kWidth;
  const LateDevice with_bytes(true), with_floats(false);
  for (const LateDevice* device : {&with_bytes, &with_floats}) {
    device->NewStep();
    MadeDataAhead ahead(NetText(Database(3), "mean_value: 3"), *device);
    for (int pass = 0; pass < 4; ++pass) ahead.Next();
    const size_t batch = device == &with_bytes ? kPixels + kBatch * (sizeof(CropOffset) + 4)
                                               : (kPixels + kBatch) * sizeof(float);
    EXPECT_EQ(device->queued_bytes % batch, 0u);
    EXPECT_GE(device->queued_bytes / batch, 4u);
    EXPECT_LE(device->queued_bytes / batch, 5u) << "one ahead at most";
    ASSERT_EQ(ahead.Staged().size(), 1u);
    EXPECT_GE(ahead.Staged()[0], batch);
    EXPECT_LE(ahead.Staged()[0], batch + 3 * 64) << "the plan counts what is staged";
  }
}

TEST_F(DataAheadTest, MixedImagesGoUpAsBytesAndShares) {
  constexpr size_t kPixels = size_t{kBatch} * 3 * kHeight * kWidth, kClasses = 7;
  const LateDevice device;
  device.NewStep();
  MadeDataAhead ahead(NetText(Database(3), "mixup: 1 mixup_classes: 7"), device);
  for (int pass = 0; pass < 4; ++pass) ahead.Next();
  const size_t batch =
      kPixels + kBatch * (sizeof(CropOffset) + sizeof(float) + kClasses * sizeof(float));
  EXPECT_EQ(device.queued_bytes % batch, 0u);
  EXPECT_LE(device.queued_bytes / batch, 5u);
}

TEST_F(DataAheadTest, CutImagesGoUpWithTheirBoxes) {
  constexpr size_t kPixels = size_t{kBatch} * 3 * kHeight * kWidth, kClasses = 7;
  const LateDevice device;
  device.NewStep();
  MadeDataAhead ahead(NetText(Database(3), "cutmix: 1 mixup_classes: 7"), device);
  for (int pass = 0; pass < 4; ++pass) ahead.Next();
  const size_t batch = kPixels + kBatch * (sizeof(CropOffset) + sizeof(float) + sizeof(CutBox) +
                                           kClasses * sizeof(float));
  EXPECT_EQ(device.queued_bytes % batch, 0u);
  EXPECT_LE(device.queued_bytes / batch, 5u);
}

class CountingDevice final : public WrappedDevice {
 public:
  void CopyToDevice(void* to, const void* host, size_t bytes) const override {
    ++copies;
    copied += bytes;
    WrappedDevice::CopyToDevice(to, host, bytes);
  }
  void Copy(const CopyDesc& desc, const void* from, void* to) const override {
    ++inner_copies;
    WrappedDevice::Copy(desc, from, to);
  }
  mutable int copies = 0, inner_copies = 0;
  mutable size_t copied = 0;
};

TEST_F(DataAheadTest, OnTheCpuABatchIsCopiedOnceAndNothingIsStaged) {
  TRAINER_CPU_ONLY("another device stages its batches");
  const CountingDevice device;
  MadeDataAhead host(NetText(Database(3), "mean_value: 3"), device);
  EXPECT_THAT(host.Staged(), testing::IsEmpty());
  for (int pass = 0; pass < 3; ++pass) {
    device.copies = device.inner_copies = 0;
    device.copied = 0;
    host.net->Forward();
    EXPECT_LE(device.copies, 2 + 1) << "images, labels, and where it does not follow the number";
    EXPECT_EQ(device.inner_copies, 0);
    EXPECT_LE(device.copied, (kBatch * 3 * kHeight * kWidth + kBatch + 1) * sizeof(float));
  }
}

TEST_F(DataAheadTest, ARecordOfFloatsAmongBytesIsRefusedWhereBytesGoUp) {
  caffe::Datum floats;
  floats.set_channels(1);
  floats.set_height(kHeight);
  floats.set_width(kWidth);
  floats.set_label(0);
  for (int i = 0; i < kHeight * kWidth; ++i) floats.add_float_data(0.5f);
  const std::string text = NetText(Database(1, {{1, floats.SerializeAsString()}}), "");
  const LateDevice device;
  MadeDataAhead ahead(text, device);
  const auto [code, message] = ErrorOf([&] { ahead.Next(); });
  EXPECT_EQ(code, ErrorCode::kData);
  EXPECT_THAT(message, HasSubstr("record '00000001' has float values, but record '00000000' has "
                                 "bytes; on this device all records must have the same type: "
                                 "convert the data set"));
  const LateDevice takes_floats(false);
  EXPECT_NO_THROW(MadeDataAhead(text, takes_floats).Next());
}

}  // namespace
}  // namespace trainer

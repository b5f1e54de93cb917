#pragma once
// Data layers whose pictures a GPU decodes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "data/test_data.h"
#include "support/golden.h"
#include "support/net_text.h"
#include "trainer/backend/gpu.h"
#include "trainer/base/text.h"
#include "trainer/data/bad_records.h"
#include "trainer/image/jpeg_unit.h"

namespace trainer {

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
    Made(const std::string& text, const Device& device, caffe::Phase phase = caffe::TRAIN,
         Replica replica = {}, int parts = 1)
        : spec(NetFromText(text)), params(device) {
      NetOptions options;
      options.state = StateOf(phase);
      options.seed = 3;
      options.log = false;
      options.replica = replica;
      options.parts = parts;
      options.training = phase == caffe::TRAIN;
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

}  // namespace trainer

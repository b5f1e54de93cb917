#pragma once

#include <string>
#include <vector>

#include "datum.pb.h"
#include "support/edited.h"
#include "support/net_text.h"
#include "support/temp_folder.h"
#include "trainer/backend/device/cpu_device.h"
#include "trainer/base/text/text.h"
#include "trainer/checkpoint/model_file.h"
#include "trainer/datasets/digits.h"
#include "trainer/inference/inference_net.h"
#include "trainer/net/weights.h"
#include "trainer/storage/cursor.h"

namespace trainer {

// A folder with 40 digits for tests, a net that classifies them, and random weights. The files are
// net.prototxt, deploy.prototxt and net.caffemodel.
class DigitsNet {
 public:
  static constexpr int kRecords = 40;

  DigitsNet() {
    const DigitsPaths data =
        WriteDigits({.folder = folder_ / "data", .train = 1, .test = kRecords});
    text = Join(R"(name: "small"
layer { name: "digits" type: "Data" top: "data" top: "label"
  include { phase: TEST } transform_param { scale: 0.00390625 }
  data_param { source: ")",
                data.test, R"(" backend: LMDB batch_size: 16 } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
layer { name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy" }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
)");
    folder_.Write("deploy.prototxt", R"(name: "small"
layer { name: "data" type: "Input" top: "data"
  input_param { shape { dim: 3 dim: 1 dim: 28 dim: 28 } } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 10 } }
layer { name: "prob" type: "Softmax" bottom: "ip" top: "prob" }
)");
    SaveWeights();
  }

  const TempFolder& folder() const { return folder_; }
  std::string weights() const { return folder_ / "net.caffemodel"; }

  // Writes `text` to net.prototxt and loads it.
  NetSpec Load() const { return LoadNet(folder_.Write("net.prototxt", text)); }
  NetSpec LoadDeploy() const { return LoadNet(folder_ / "deploy.prototxt"); }

  // Writes random weights of the net `text`.
  void SaveWeights() const {
    const NetSpec spec = Load();
    InferenceNet net(spec, *device, {.state = StateOf(caffe::TEST), .seed = 7});
    caffe::NetParameter model = WeightsOf(net.net());
    WriteModel(weights(), model);
  }

  // Writes the first digits as images 0.pgm, 1.pgm, ... and returns their paths.
  std::vector<std::string> WriteImages(int count) const {
    std::vector<std::string> paths;
    const auto cursor = OpenCursor("LMDB", folder_ / "data/test_lmdb");
    for (int i = 0; i < count; ++i, cursor->Next()) {
      caffe::Datum datum;
      datum.ParseFromString(std::string(cursor->Value()));
      paths.push_back(folder_.Write(Join(i, ".pgm"), "P5 28 28 255\n" + datum.data()));
    }
    return paths;
  }

  std::string text;
  std::unique_ptr<Device> device = MakeCpuDevice(1);

 private:
  TempFolder folder_;
};

}  // namespace trainer

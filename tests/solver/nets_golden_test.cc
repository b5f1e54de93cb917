// Trains the nets of models/ for twenty iterations from an LMDB and compares their losses with
// independent models (nets.py, big_nets.py and attention.py in scripts/golden).

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "datum.pb.h"
#include "support/golden.h"
#include "support/source_folder.h"
#include "support/temp_folder.h"
#include "support/test_device.h"
#include "trainer/backend/device/device.h"
#include "trainer/base/text/text.h"
#include "trainer/config/solver_spec.h"
#include "trainer/monitor/observer.h"
#include "trainer/net/weights.h"
#include "trainer/solver/solver.h"
#include "trainer/storage/database_writer.h"

namespace trainer {
namespace {

constexpr int kIterations = 20;
constexpr char kSmallNets[] = "nets/nets.txt";

double NumberOr(const GoldenCase& golden, const std::string& key, double otherwise) {
  const auto found = golden.numbers.find(key);
  return found == golden.numbers.end() ? otherwise : found->second;
}

// The generated images of a case. Each record repeats every pixel `zoom` times in both directions.
// Training starts over after `records` records.
struct Images {
  explicit Images(const GoldenCase& golden)
      : channels(static_cast<int>(golden.Number("channels"))),
        height(static_cast<int>(golden.Number("height"))),
        width(static_cast<int>(golden.Number("width"))),
        classes(static_cast<uint32_t>(golden.Number("classes"))),
        batch(static_cast<uint32_t>(golden.Number("batch"))),
        records(static_cast<uint32_t>(NumberOr(golden, "records", kIterations * batch))),
        zoom(static_cast<int>(NumberOr(golden, "zoom", 1))) {}

  uint32_t size() const { return static_cast<uint32_t>(channels * height * width); }

  int channels, height, width;
  uint32_t classes, batch, records;
  int zoom;
};

// Returns the bytes of record i, of shape (C, H * zoom, W * zoom).
std::string RecordBytes(const Images& images, uint32_t i, uint32_t label) {
  std::string bytes;
  const int zoom = images.zoom;
  for (int c = 0; c < images.channels; ++c) {
    for (int h = 0; h < images.height * zoom; ++h) {
      for (int w = 0; w < images.width * zoom; ++w) {
        const int pixel = (c * images.height + h / zoom) * images.width + w / zoom;
        bytes +=
            static_cast<char>(HashPixel(i, label, static_cast<uint32_t>(pixel), images.size()));
      }
    }
  }
  return bytes;
}

void WriteDatabase(const Images& images, const std::string& path) {
  const auto writer = CreateDb("LMDB", path);
  caffe::Datum datum;
  datum.set_channels(images.channels);
  datum.set_height(images.height * images.zoom);
  datum.set_width(images.width * images.zoom);
  for (uint32_t i = 0; i < images.records; ++i) {
    const uint32_t label = HashLabel(i, images.classes);
    datum.set_label(static_cast<int>(label));
    datum.set_data(RecordBytes(images, i, label));
    char key[16];
    std::snprintf(key, sizeof(key), "%08u", i);
    writer->Put(key, datum.SerializeAsString());
  }
  writer->Commit();
}

void WriteMean(const Images& images, const std::string& path) {
  caffe::BlobProto mean;
  for (const int dim : {1, images.channels, images.height, images.width}) {
    mean.mutable_shape()->add_dim(dim);
  }
  for (uint32_t k = 0; k < images.size(); ++k) mean.add_data(HashMean(k));
  WriteText(path, mean.SerializeAsString());
}

// Returns the solver of `golden` with its net, which reads its data from `folder`.
SolverSpec LoadCase(const GoldenCase& golden, const Images& images, const TempFolder& folder) {
  std::string net = golden.Text("net");
  net.pop_back();  // its newline
  WriteText(folder / "solver.prototxt",
            Join(golden.Text("solver"), "net: \"", SourceFolder(), "/", net,
                 "\" solver_mode: CPU snapshot_after_train: false snapshot_prefix: \"",
                 folder / "net", "\""));
  SolverSpec spec = LoadSolver(folder / "solver.prototxt");
  for (LayerSpec& layer : spec.nets[0].layers) {
    caffe::LayerParameter& proto = layer.mutable_proto();
    if (layer.type() == "Data") {
      proto.mutable_data_param()->set_source(folder / "lmdb");
      proto.mutable_data_param()->set_batch_size(images.batch);
      caffe::TransformationParameter& transform = *proto.mutable_transform_param();
      transform.set_scale(static_cast<float>(golden.Number("scale")));
      if (transform.has_mean_file()) transform.set_mean_file(folder / "mean");
      if (golden.numbers.contains("in_order")) {  // without the random order and mirroring
        proto.mutable_data_param()->clear_shuffle();
        transform.clear_mirror();
      }
    }
    if (proto.loss_weight_size() == 0) continue;
    const auto weight = golden.numbers.find(Join("loss_weight_", proto.top(0)));
    if (weight != golden.numbers.end()) {
      proto.set_loss_weight(0, static_cast<float>(weight->second));
    }
  }
  return spec;
}

// Fills parameter i from hash stream i, within bound_i of center_i (or of 0 without one).
caffe::NetParameter StartWeights(const Net& net, const GoldenCase& golden) {
  caffe::NetParameter start;
  for (size_t i = 0; i < net.params().size(); ++i) {
    const Param& param = *net.params()[i];
    if (param.index == 0) start.add_layer()->set_name(param.layer);
    caffe::BlobProto& blob = *start.mutable_layer()->rbegin()->add_blobs();
    for (const int64_t dim : param.shape.dims()) blob.mutable_shape()->add_dim(dim);
    const double bound = golden.Number(Join("bound_", i));
    const auto center = static_cast<float>(NumberOr(golden, Join("center_", i), 0));
    for (int64_t k = 0; k < param.count(); ++k) {
      blob.add_data(center + HashWeight(static_cast<uint32_t>(i), static_cast<uint32_t>(k), bound));
    }
  }
  return start;
}

// The sums that BatchNorm stores are as large as its data and no more precise. Learned parameters
// have tighter bounds: another order of sums in one convolution uses up half of the bound of a sum
// of squares.
void ExpectWeights(const Device& device, const Net& net, const GoldenCase& golden) {
  for (size_t i = 0; i < net.params().size(); ++i) {
    const Param& param = *net.params()[i];
    const bool learned = param.lr_mult > 0;
    double sum = 0, squares = 0;
    for (const double w : WeightOf(device, param)) {
      sum += w;
      squares += w * w;
    }
    const double expected = golden.Number(Join("sum_of_squares_", i));
    const double length = std::sqrt(static_cast<double>(param.count()) * expected);
    EXPECT_NEAR(sum, golden.Number(Join("sum_", i)), 2e-3 + (learned ? 2e-5 : 2e-4) * length)
        << param.key;
    EXPECT_NEAR(squares, expected, (learned ? 1e-4 : 2e-4) * expected) << param.key;
  }
}

// A case of a golden file.
struct CaseName {
  std::string file, name;
  size_t number = 0;
  GoldenCase Read() const { return ReadGolden(file).at(number); }
};
void PrintTo(const CaseName& one, std::ostream* out) { *out << one.name; }

class NetsGoldenTest : public testing::TestWithParam<CaseName> {};

// A case's solver with its data and start weights.
struct Run {
  Run(const GoldenCase& golden, caffe::Type storage, float rate) {
    const Images images(golden);
    WriteDatabase(images, folder / "lmdb");
    WriteMean(images, folder / "mean");
    spec = LoadCase(golden, images, folder);
    spec.proto.set_base_lr(rate * spec.proto.base_lr());
    spec.nets[0].proto.set_default_forward_type(storage);
    solver = std::make_unique<Solver>(spec, SolverOptions{}, *device, observer);
    CopyWeights(StartWeights(solver->train_net(), golden), "start", solver->train_net());
  }

  TempFolder folder;
  SolverSpec spec;
  std::unique_ptr<Device> device = MakeTestDevice(1);
  TrainingObserver observer;
  std::unique_ptr<Solver> solver;
};

// Trains with activations of type `storage` and expects each loss within the relative `bound`. With
// f32, the weights are compared too.
void ExpectTwentyIterations(const GoldenCase& golden, caffe::Type storage, double bound) {
  const Run run(golden, storage, 1);
  for (int i = 0; i < kIterations; ++i) {
    const double expected = golden.Number(Join("loss_", i));
    EXPECT_NEAR(run.solver->Step(), expected, bound * expected) << "iteration " << i;
  }
  if (storage == caffe::FLOAT) ExpectWeights(*run.device, run.solver->train_net(), golden);
}

// Each kind of processor rounds sums in another order. With AVX-512 the losses differ by at most
// 1e-4; with AVX2 the losses of AlexNet differ by 1.3e-4 after 17 iterations.
TEST_P(NetsGoldenTest, TwentyIterationsMatchAnIndependentModel) {
  ExpectTwentyIterations(GetParam().Read(), caffe::FLOAT, 2e-4);
}

// Returns the losses of twenty iterations at `rate` times the case's learning rate.
std::vector<float> LossesOf(const GoldenCase& golden, caffe::Type storage, float rate) {
  const Run run(golden, storage, rate);
  std::vector<float> losses;
  for (int i = 0; i < kIterations; ++i) losses.push_back(run.solver->Step());
  return losses;
}

// The learning rates of the small nets amplify rounding errors: LeNet diverges. So each net is
// compared with its f32 run, which the test above checks, at a tenth of the rate.
TEST_P(NetsGoldenTest, TwentyIterationsInBf16AreNearThem) {
  const GoldenCase golden = GetParam().Read();
  if (GetParam().file != kSmallNets) {
    return ExpectTwentyIterations(golden, caffe::BFLOAT16, 0.02);
  }
  const std::vector<float> expected = LossesOf(golden, caffe::FLOAT, 0.1f);
  const std::vector<float> losses = LossesOf(golden, caffe::BFLOAT16, 0.1f);
  for (size_t i = 0; i < losses.size(); ++i) {
    EXPECT_NEAR(losses[i], expected[i], 0.05 * expected[0]) << "iteration " << i;
  }
}

std::vector<CaseName> AllCases() {
  std::vector<CaseName> cases;
  for (const char* file : {kSmallNets, "nets/big_net_alexnet.txt", "nets/big_net_googlenet.txt",
                           "nets/big_net_resnet50.txt", "nets/big_net_mobilenet_v2.txt",
                           "nets/big_net_vit_tiny.txt"}) {
    const auto goldens = ReadGolden(file);
    for (size_t i = 0; i < goldens.size(); ++i) cases.push_back({file, goldens[i].name, i});
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Of, NetsGoldenTest, testing::ValuesIn(AllCases()),
                         [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace trainer

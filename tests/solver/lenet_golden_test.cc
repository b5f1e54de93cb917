// LeNet as shipped in models/lenet, trained for twenty iterations from an LMDB, against the losses
// of an independent model (scripts/golden/lenet.py).

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "datum.pb.h"
#include "support/golden.h"
#include "support/temp_folder.h"
#include "trainer/backend/device.h"
#include "trainer/base/text.h"
#include "trainer/config/solver_spec.h"
#include "trainer/data/db_writer.h"
#include "trainer/observe/observer.h"
#include "trainer/solver/solver.h"

namespace trainer {
namespace {

void WriteDigitsDatabase(const std::string& path, uint32_t count) {
  const auto writer = CreateDb("LMDB", path);
  for (uint32_t i = 0; i < count; ++i) {
    caffe::Datum datum;
    datum.set_channels(1);
    datum.set_height(28);
    datum.set_width(28);
    datum.set_label(HashDigitLabel(i));
    std::string bytes;
    for (uint32_t pixel = 0; pixel < 784; ++pixel) {
      bytes += static_cast<char>(HashDigitByte(i, pixel));
    }
    datum.set_data(bytes);
    char key[16];
    std::snprintf(key, sizeof(key), "%08u", i);
    writer->Put(key, datum.SerializeAsString());
  }
  writer->Commit();
}

std::string Replace(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

// A layer's weights by the hash of stream `stream` within xavier's bound, and zero biases.
void AddLayer(caffe::NetParameter& net, const std::string& name, std::vector<int64_t> dims,
              uint32_t stream) {
  caffe::LayerParameter& layer = *net.add_layer();
  layer.set_name(name);
  int64_t count = 1;
  caffe::BlobProto& weight = *layer.add_blobs();
  for (const int64_t dim : dims) {
    weight.mutable_shape()->add_dim(dim);
    count *= dim;
  }
  const double bound = std::sqrt(3.0 / static_cast<double>(count / dims[0]));
  for (int64_t i = 0; i < count; ++i) {
    weight.add_data(HashWeight(stream, static_cast<uint32_t>(i), bound));
  }
  caffe::BlobProto& bias = *layer.add_blobs();
  bias.mutable_shape()->add_dim(dims[0]);
  for (int64_t i = 0; i < dims[0]; ++i) bias.add_data(0);
}

caffe::NetParameter StartWeights() {
  caffe::NetParameter net;
  AddLayer(net, "conv1", {20, 1, 5, 5}, 0);
  AddLayer(net, "conv2", {50, 20, 5, 5}, 2);
  AddLayer(net, "ip1", {500, 800}, 4);
  AddLayer(net, "ip2", {10, 500}, 6);
  return net;
}

TEST(LenetGoldenTest, TwentyIterationsMatchAnIndependentModel) {
  const GoldenCase golden = ReadGolden("lenet.txt").at(0);
  const int batch = static_cast<int>(golden.Number("batch"));
  const TempFolder folder;
  WriteDigitsDatabase(folder / "train_lmdb", static_cast<uint32_t>(20 * batch));
  std::string net = ReadText(std::string(TRAINER_SOURCE_DIR) + "/models/lenet/train_test.prototxt");
  net = Replace(net, "data/digits/train_lmdb", folder / "train_lmdb");
  WriteText(folder / "net.prototxt", Replace(net, "batch_size: 64", Join("batch_size: ", batch)));
  WriteText(folder / "solver.prototxt",
            Join(golden.Text("solver"), "net: \"", folder / "net.prototxt",
                 "\" solver_mode: CPU snapshot_after_train: false snapshot_prefix: \"",
                 folder / "lenet", "\""));

  const SolverSpec spec = LoadSolver(folder / "solver.prototxt");
  const auto device = MakeCpuDevice();
  Observer observer;
  Solver solver(spec, {}, *device, observer);
  solver.train_net().CopyWeights(StartWeights(), "start");
  for (int i = 0; i < 20; ++i) {
    const double expected = golden.Number(Join("loss_", i));
    EXPECT_NEAR(solver.Step(), expected, 1e-5 * expected) << "iteration " << i;
  }
  const std::vector<Param*>& params = solver.train_net().params();
  ASSERT_EQ(params.size(), 8u);
  for (size_t i = 0; i < params.size(); ++i) {
    double sum = 0, squares = 0;
    for (int64_t j = 0; j < params[i]->count(); ++j) {
      const double w = params[i]->weight[j];
      sum += w;
      squares += w * w;
    }
    EXPECT_NEAR(sum, golden.Number(Join("sum_", i)), 1e-3) << "parameter " << i;
    const double expected = golden.Number(Join("sum_of_squares_", i));
    EXPECT_NEAR(squares, expected, 1e-5 * expected) << "parameter " << i;
  }
}

}  // namespace
}  // namespace trainer

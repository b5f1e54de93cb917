// Compares the bytes of GPU memory that an iteration of common nets reads and writes, counted by
// the emulated GPU, with the minimum for passes over its tensors: see LeastOf.

// Whole images pass through all kernels, which takes minutes with a sanitizer.
#if defined(TRAINER_CUDA_EMULATED) && !defined(__SANITIZE_ADDRESS__)

#include <emulated_gpu.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>

#include "made_up_model.h"
#include "small_run.h"
#include "trainer/backend/device/gpu.h"

namespace trainer {
namespace {

// During its lifetime, kernels of more than `most_blocks` blocks and library calls compute nothing.
struct KernelsOf {
  explicit KernelsOf(uint64_t most_blocks) { emulated_gpu::SetMostBlocks(most_blocks); }
  ~KernelsOf() { emulated_gpu::SetMostBlocks(emulated_gpu::kManyBlocks); }
};
// Counts the bytes that kernels access during its lifetime.
struct CountsBytes {
  CountsBytes() { emulated_gpu::CountBytes(true); }
  ~CountsBytes() { emulated_gpu::CountBytes(false); }
};

struct Moved {
  double measured = 0, least = 0;  // bytes
};
// The keys are the types of layers that are fused, e.g. "Convolution+ReLU".
using MovedByType = std::map<std::string, Moved>;

std::set<std::string> FusedInto(const Net& net, int i) {
  std::set<std::string> types;
  for (const Node& node : net.graph().nodes) {
    if (node.fused_into == NodeId(i)) types.insert(node.spec.type());
  }
  return types;
}

std::string TypeOf(const Net& net, int i) {
  std::string type = net.graph().nodes[NodeId(i)].spec.type();
  for (const std::string& fused : FusedInto(net, i)) type += "+" + fused;
  return type;
}

// Returns the least bytes that layer i moves, forward and backward, if each kernel reads and writes
// its tensors once. x, y: the inputs and outputs; w: the parameters in f32.
//   convolutions, products   x + w -> y; x + dy -> dw; dy + w -> dx if dx is wanted
//     with a bias            dy -> db
//     with a ReLU            dy + y -> dy, db instead
//   BatchNorm, Scale, ReLU   x; x -> y; x + dy; x + dy -> dx
//     with a sum             x; x + other -> y; x + y + dy -> g; x + g -> dx
//   pools                    x -> y and a byte per winner; dy and these bytes -> dx
//   LRN                      x -> y; x + dy -> dx
//   ReLU, Dropout            x -> y; y + dy -> dx
//   Concat, Cast             x -> y; dy -> dx
//   Split                    the gradients of all readers -> dx
//   losses                   x -> p; p -> dx
double LeastOf(const Net& net, int i) {
  const Node& node = net.graph().nodes[NodeId(i)];
  const caffe::LayerParameter& layer = node.spec.proto();
  if (node.fused_into || node.in.empty()) return 0;
  const std::set<std::string> fused = FusedInto(net, i);
  const std::string& type = layer.type();
  double x = 0, w = 0;
  for (const ValueId in : node.in) x += static_cast<double>(net.Value(in).Bytes());
  const Tensor out = net.Value(node.out[0]);
  const auto y = static_cast<double>(out.Bytes());
  for (const Param* param : net.params()) {
    if (param->final_grad_node == i) w += sizeof(float) * static_cast<double>(param->count());
  }
  if (type == "Convolution" || type == "InnerProduct") {
    const bool wants = net.Gradient(layer.bottom(0)).data != nullptr;
    const bool bias = type == "Convolution" ? layer.convolution_param().bias_term()
                                            : layer.inner_product_param().bias_term();
    return (wants ? 3 : 2) * (x + w + y) + (fused.contains("ReLU") ? 3 * y : bias ? y : 0);
  }
  if (type == "BatchNorm") return fused.contains("Eltwise") ? 11 * y : 8 * y;
  if (type == "Pooling") {
    const bool max = layer.pooling_param().pool() == caffe::PoolingParameter::MAX;
    const auto winners = static_cast<double>(out.Count());
    return 2 * (x + y + (max ? winners : 0));
  }
  if (type == "LRN" || type == "ReLU" || type == "Dropout") return 5 * y;
  if (type == "Concat") return 4 * y;
  if (type == "Cast") return 2 * (x + y);
  if (type == "Split") return (1 + layer.top_size()) * x;
  if (type == "SoftmaxWithLoss") return 4 * x;
  ADD_FAILURE() << "how much does a layer of type " << type << " move?";
  return 0;
}

// Measures one pass of a net whose previous passes computed nothing.
MovedByType MeasurePass(Net& net) {
  MovedByType moved;
  const KernelsOf all(emulated_gpu::kManyBlocks - 1);
  const CountsBytes counts;
  const NodeHook hook = [&](const Net&, NodeId id, Direction direction,
                            const std::function<void()>& run) {
    net.device().Synchronize();
    emulated_gpu::ResetCounters();
    run();
    net.device().Synchronize();
    const emulated_gpu::Counters found = emulated_gpu::Count();
    Moved& of_type = moved[TypeOf(net, id.number)];
    of_type.measured += static_cast<double>(found.read_bytes + found.written_bytes);
    if (direction == Direction::kForward) of_type.least += LeastOf(net, id.number);
  };
  net.AddHook(&hook);
  net.Forward();
  net.Backward();
  net.RemoveHook(&hook);
  moved.erase("DummyData");
  return moved;
}

// Measures one pass of `model`. In previous passes, only kernels of at most `blocks` blocks run,
// which is enough for a finite loss.
MovedByType MeasureModel(const MadeUpModel& model, uint64_t blocks = 1) {
  const KernelsOf some(blocks);
  SmallRun run("base_lr: 0.01 lr_policy: \"fixed\" momentum: 0.9 weight_decay: 0.0005 max_iter: 90",
               NetText(model), {}, "", MakeGpuDevice({.deterministic = true}));
  run.solver->Step();
  return MeasurePass(run.solver->train_net());
}

// During its lifetime, the ReLU in cuDNN's convolutions returns 0 for NaN, as a real one may.
struct ReluDropsNan {
  ReluDropsNan() { emulated_gpu::Reset({.fused_relu_keeps_nan = false}); }
  ~ReluDropsNan() { emulated_gpu::Reset(); }
};

// Extrapolates to batches of `batch` images from batches of one and two images: the bytes have a
// constant part for the weights and an equal part for each image.
MovedByType MeasureForBatch(MadeUpModel model, int batch) {
  model.batch = 1;
  const MovedByType one = MeasureModel(model);
  model.batch = 2;
  MovedByType all = MeasureModel(model);
  for (auto& [type, two] : all) {
    const Moved& first = one.at(type);
    two.measured = first.measured + (batch - 1) * (two.measured - first.measured);
    two.least = first.least + (batch - 1) * (two.least - first.least);
  }
  return all;
}

std::string TableOf(const MovedByType& moved) {
  std::ostringstream text;
  for (const auto& [type, bytes] : moved) {
    text << type << " " << 1e-6 * bytes.measured << " MB, at least " << 1e-6 * bytes.least
         << (bytes.measured > 1.15 * bytes.least ? " (exceeds)\n" : "\n");
  }
  return text.str();
}

void ExpectNearTheLeast(const MovedByType& moved) {
  Moved sum;
  for (const auto& [type, bytes] : moved) {
    sum.measured += bytes.measured;
    sum.least += bytes.least;
  }
  EXPECT_LE(sum.measured, 1.15 * sum.least) << TableOf(moved);
  // A smaller number means that something was not counted.
  EXPECT_GE(sum.measured, 0.95 * sum.least) << TableOf(moved);
  testing::Test::RecordProperty("bytes", TableOf(moved));
}

TEST(GpuBytesTest, OfLeNet) {
  ExpectNearTheLeast(MeasureModel({.folder = "lenet", .image = {1, 28, 28}, .batch = 64},
                                  emulated_gpu::kManyBlocks - 1));
}

TEST(GpuBytesTest, OfCaffeNet) {
  ExpectNearTheLeast(
      MeasureForBatch({.folder = "caffenet", .image = {3, 227, 227}, .small_products = true}, 256));
}

TEST(GpuBytesTest, OfCaffeNetInF16WhereReluDropsNan) {
  const ReluDropsNan drops;
  ExpectNearTheLeast(MeasureForBatch({.folder = "caffenet",
                                      .image = {3, 227, 227},
                                      .small_products = true,
                                      .type = caffe::FLOAT16},
                                     256));
}

TEST(GpuBytesTest, OfGoogLeNet) {
  ExpectNearTheLeast(MeasureForBatch({.folder = "googlenet", .image = {3, 224, 224}}, 32));
}

TEST(GpuBytesTest, OfResNet50InF16) {
  ExpectNearTheLeast(
      MeasureForBatch({.folder = "resnet50", .image = {3, 224, 224}, .type = caffe::FLOAT16}, 32));
}

}  // namespace
}  // namespace trainer

#endif

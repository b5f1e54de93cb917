#include "support/digits_job.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "trainer/datasets/digits.h"

namespace trainer {
namespace {

constexpr char kJobNet[] = R"(name: "small"
layer {
  name: "digits"
  type: "Data"
  top: "data"
  top: "label"
  include { phase: TRAIN }
  transform_param { scale: 0.00390625 }
  data_param { source: "data/train_lmdb" backend: LMDB batch_size: 16 }
}
layer {
  name: "digits"
  type: "Data"
  top: "data"
  top: "label"
  include { phase: TEST }
  transform_param { scale: 0.00390625 }
  data_param { source: "data/test_lmdb" backend: LMDB batch_size: 16 }
}
layer {
  name: "ip"
  type: "InnerProduct"
  bottom: "data"
  top: "ip"
  inner_product_param {
    num_output: 10
    weight_filler { type: "xavier" }
  }
}
layer {
  name: "accuracy"
  type: "Accuracy"
  bottom: "ip"
  bottom: "label"
  top: "accuracy"
  include { phase: TEST }
}
layer {
  name: "loss"
  type: "SoftmaxWithLoss"
  bottom: "ip"
  bottom: "label"
  top: "loss"
}
)";

constexpr char kJobSolver[] = R"(net: "net.prototxt"
test_iter: 3
test_interval: 10
base_lr: 0.05
lr_policy: "inv"
gamma: 0.01
power: 0.75
momentum: 0.9
weight_decay: 0.0005
display: 5
max_iter: 20
snapshot: 10
snapshot_prefix: "snap"
random_seed: 7
solver_mode: CPU
)";

// Returns the folder of the digits of every job. A test program draws them once, because drawing
// them for each of some 400 jobs would take a minute.
std::string DrawnDigits(const std::string& backend) {
  static std::map<std::string, TempFolder> drawn;
  const auto [set, is_new] = drawn.try_emplace(backend);
  const std::string folder = set->second / "data";
  if (is_new) WriteDigits({.folder = folder, .backend = backend, .train = 100, .test = 40});
  return folder;
}

}  // namespace

DigitsJob::DigitsJob(const std::string& backend) : net(kJobNet), solver(kJobSolver) {
  std::filesystem::copy(DrawnDigits(backend), folder_ / "data",
                        std::filesystem::copy_options::recursive);
  if (backend == "LMDB") return;
  for (const char* set : {"train", "test"}) {
    const std::string old = std::string("data/") + set + "_lmdb\" backend: LMDB";
    net = Edited(net, old, std::string("data/") + set + "_leveldb\" backend: LEVELDB");
  }
}

void DigitsJob::Write() const {
  WriteText(folder_ / "net.prototxt", net);
  WriteText(folder_ / "solver.prototxt", solver);
}

std::vector<std::string> DigitsJob::Files(const std::string& prefix) const {
  std::vector<std::string> names = folder_.Names();
  std::erase_if(names, [&](const std::string& name) { return !name.starts_with(prefix); });
  return names;
}

void AddSlips(DigitsJob& job) {
  job.net = Edited(job.net, "num_output: 10", "num_output: 12");
  job.net = Edited(job.net, "include { phase: TEST }\n  transform_param { scale: 0.00390625 }",
                   "include { phase: TEST }\n  transform_param { mean_value: 33 mirror: true }");
  job.net =
      Edited(job.net, "layer {\n  name: \"loss\"\n  type: \"SoftmaxWithLoss\"\n  bottom: \"ip\"",
             "layer { name: \"prob\" type: \"Softmax\" bottom: \"ip\" top: \"prob\" }\n"
             "layer { name: \"side\" type: \"InnerProduct\" bottom: \"data\" top: \"side\"\n  "
             "inner_product_param { num_output: 3 weight_filler { type: \"xavier\" } } }\n"
             "layer {\n  name: \"loss\"\n  type: \"SoftmaxWithLoss\"\n  bottom: \"prob\"");
  job.solver = Edited(job.solver, "base_lr: 0.05", "type: \"Adam\" base_lr: 3");
}

}  // namespace trainer

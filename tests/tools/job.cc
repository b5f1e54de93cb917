#include "job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <regex>

#include "trainer/dataset/dataset.h"

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

// The digits of every job, as `trainer dataset digits` draws them. A test program draws them once,
// because starting the program for each of some 400 jobs would cost a minute.
std::string DrawnDigits(const std::string& backend) {
  static std::map<std::string, TempFolder> drawn;
  const auto [set, is_new] = drawn.try_emplace(backend);
  const std::string folder = set->second / "data";
  if (is_new) WriteDigits({.folder = folder, .backend = backend, .train = 100, .test = 40});
  return folder;
}

}  // namespace

std::string Edited(const std::string& text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  if (at == std::string::npos) {
    ADD_FAILURE() << "'" << from << "' is not in:\n" << text;
    return text;
  }
  return text.substr(0, at) + to + text.substr(at + from.size());
}

Job::Job(const std::string& backend) : net(kJobNet), solver(kJobSolver) {
  std::filesystem::copy(DrawnDigits(backend), folder_ / "data",
                        std::filesystem::copy_options::recursive);
  if (backend == "LMDB") return;
  for (const char* set : {"train", "test"}) {
    const std::string old = std::string("data/") + set + "_lmdb\" backend: LMDB";
    net = Edited(net, old, std::string("data/") + set + "_leveldb\" backend: LEVELDB");
  }
}

void Job::Write() const {
  WriteText(folder_ / "net.prototxt", net);
  WriteText(folder_ / "solver.prototxt", solver);
}

RunOptions Job::options() const {
  RunOptions run = {.folder = folder_.path()};
  run.env.insert(run.env.end(), environment.begin(), environment.end());
  return run;
}

RunOptions Job::OptionsWithoutRoot() const {
  RunOptions run = options();
  run.as_nobody = geteuid() == 0;
  if (!run.as_nobody) return run;
  const auto give = [](const std::string& path) {
    EXPECT_EQ(lchown(path.c_str(), kNobody, kNobody), 0) << path;
  };
  give(folder_.path());
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path())) {
    give(entry.path().string());
  }
  return run;
}

std::vector<std::string> Job::TrainCommand(const std::vector<std::string>& more) const {
  std::vector<std::string> command = {"train", "--solver=solver.prototxt"};
  command.insert(command.end(), more.begin(), more.end());
  return command;
}

Outcome Job::Train(const std::vector<std::string>& more) const {
  Write();
  return RunProgram(TrainCommand(more), options());
}

std::vector<std::string> Job::Files(const std::string& prefix) const {
  std::vector<std::string> names = folder_.Names();
  std::erase_if(names, [&](const std::string& name) { return !name.starts_with(prefix); });
  return names;
}

void ExpectRefused(const Job& job, const Outcome& outcome, int code, const std::string& start,
                   const std::string& part) {
  EXPECT_EQ(outcome.exit_code, code) << outcome.err;
  EXPECT_EQ(outcome.signal, 0);
  EXPECT_THAT(outcome.Errors(), testing::ElementsAre(testing::StartsWith(start)));
  EXPECT_THAT(outcome.Errors(), testing::ElementsAre(testing::HasSubstr(part)));
  EXPECT_THAT(outcome.err, testing::Not(testing::HasSubstr("terminate called")));
  EXPECT_THAT(outcome.err, testing::Not(testing::HasSubstr("stack trace")));
  EXPECT_THAT(job.Files("."), testing::IsEmpty());
  EXPECT_EQ(outcome.out, "");
}

std::vector<std::string> LogFrom(const Outcome& outcome, const std::string& from) {
  static const std::regex prefix(R"(^[IWEF]\d{4} \S+ +\d+ \S+\] )");
  static const std::regex rate(R"( \(\S+ iter/s, \S+s/\d+ iters\))");
  std::vector<std::string> lines;
  bool begun = false;
  for (const std::string& line : outcome.ErrLines()) {
    begun = begun || line.find(from) != std::string::npos;
    const bool from_reader = line.find("prefetch") != std::string::npos;
    const bool waiting = line.find("Waiting for data") != std::string::npos;
    const bool crowded = line.find("Other programs use") != std::string::npos;
    if (!begun || from_reader || waiting || crowded) continue;
    lines.push_back(std::regex_replace(std::regex_replace(line, prefix, ""), rate, ""));
  }
  return lines;
}

}  // namespace trainer

#include "trainer/config/storage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/config_testing.h"
#include "support/log_collector.h"
#include "trainer/config/solver_spec.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class StorageTest : public testing::Test {
 protected:
  std::string Write(const std::string& text) { return folder_.Write("net.prototxt", text); }

  // Returns the log's lines without the folder.
  std::vector<std::string> Lines(const std::string& text) {
    const std::string path = Write(text);
    const LogCollector log;
    LoadNet(path);
    std::vector<std::string> lines;
    for (const std::string& line : log.lines) lines.push_back(Short(line));
    return lines;
  }
  std::string Refusal(const std::string& text) {
    const std::string path = Write(text);
    return Short(CatchConfig([&] { LoadNet(path); }).text);
  }
  std::string Short(const std::string& text) const {
    return text.starts_with(folder_.path()) ? text.substr(folder_.path().size() + 1) : text;
  }

  TempFolder folder_;
};

TEST_F(StorageTest, ALayersTypeComesBeforeTheNets) {
  const NetSpec net = LoadNet(Write(R"(default_forward_type: BFLOAT16
layer { name: "a" type: "T" top: "a" }
layer { name: "b" type: "T" top: "b" forward_type: FLOAT }
layer { name: "c" type: "T" top: "c" forward_type: FLOAT16 })"));
  EXPECT_EQ(StorageOf(net, net.layers[0]), caffe::BFLOAT16);
  EXPECT_EQ(StorageOf(net, net.layers[1]), caffe::FLOAT);
  EXPECT_EQ(StorageOf(net, net.layers[2]), caffe::FLOAT16);
  EXPECT_EQ(Short(StoragePlace(net, net.layers[0]).ToString()), "net.prototxt:1:1");
  EXPECT_EQ(Short(StoragePlace(net, net.layers[2]).ToString()), "net.prototxt:4:38");
  const NetSpec plain = LoadNet(Write(R"(layer { name: "a" type: "T" top: "a" })"));
  EXPECT_EQ(StorageOf(plain, plain.layers[0]), caffe::FLOAT);
}

TEST_F(StorageTest, TheHeadOfANetFileOfNvidiaCaffeCallsForNoRemark) {
  EXPECT_THAT(Lines(R"(name: "n"
default_forward_type: FLOAT16
default_backward_type: FLOAT16
default_forward_math: FLOAT
default_backward_math: FLOAT
layer { name: "a" type: "T" top: "a" forward_type: FLOAT16 backward_type: FLOAT16 })"),
              IsEmpty());
  EXPECT_THAT(Lines("default_forward_type: BFLOAT16 default_backward_type: BFLOAT16"), IsEmpty());
}

TEST_F(StorageTest, WhatHasNoEffectIsSaidOnceOfEachKind) {
  EXPECT_THAT(
      Lines(R"(default_forward_type: BFLOAT16
default_backward_type: FLOAT
default_forward_math: FLOAT16
default_backward_math: FLOAT16
global_grad_scale: 1000
layer { name: "a" type: "T" top: "a"
  backward_type: FLOAT })"),
      ElementsAre("net.prototxt:2:1: default_backward_type has no effect: gradients have the type "
                  "of the values they belong to, BFLOAT16",
                  "net.prototxt:3:1: default_forward_math has no effect: sums are FLOAT",
                  "net.prototxt:5:1: global_grad_scale has no effect: BFLOAT16 and FLOAT "
                  "represent small gradients without scaling"));
}

TEST_F(StorageTest, ASolverSaysOnceWhatHasNoEffect) {
  Write("default_forward_math: FLOAT16 layer { name: \"a\" type: \"T\" top: \"a\" }");
  const std::string solver = folder_.Write(
      "solver.prototxt", "net: \"net.prototxt\" base_lr: 1 lr_policy: \"fixed\" max_iter: 1");
  const LogCollector log;
  LoadSolver(solver);
  EXPECT_EQ(
      std::ranges::count_if(
          log.lines, [](const std::string& line) { return line.find("no effect") != line.npos; }),
      1);
}

TEST_F(StorageTest, RefusesOtherTypesAtTheirLines) {
  EXPECT_EQ(Refusal("name: 'n'\n  default_forward_type: INT"),
            "net.prototxt:2:3: default_forward_type is INT; it must be FLOAT, FLOAT16 or BFLOAT16");
  EXPECT_EQ(Refusal("default_backward_math: DOUBLE"),
            "net.prototxt:1:1: default_backward_math is DOUBLE; all sums are FLOAT in this "
            "program: remove the field");
  EXPECT_EQ(Refusal("layer { name: 'a' type: 'T' top: 'a'\nforward_type: DOUBLE }"),
            "net.prototxt:2:1: layer 'a' (T): forward_type is DOUBLE; it must be FLOAT, FLOAT16 "
            "or BFLOAT16");
  EXPECT_EQ(Refusal("layer { name: 'a' type: 'T' top: 'a'\nbackward_type: BOOL }"),
            "net.prototxt:2:1: layer 'a' (T): backward_type is BOOL; it must be FLOAT, FLOAT16 or "
            "BFLOAT16");
}

class SolverStorageTest : public StorageTest {
 protected:
  SolverSpec Load(const std::string& text, const std::vector<std::string>& assignments = {}) {
    Overrides overrides(assignments);
    return LoadSolver(
        folder_.Write("s.prototxt",
                      text + "net: 'net.prototxt' base_lr: 0.1 lr_policy: 'fixed' max_iter: 1"),
        {}, &overrides);
  }
};

TEST_F(SolverStorageTest, TheSolversTypeHoldsForItsNetsUnlessALayerHasItsOwn) {
  Write(R"(default_forward_type: FLOAT
layer { name: "a" type: "T" top: "a" }
layer { name: "b" type: "T" top: "b" forward_type: FLOAT })");
  const SolverSpec solver = Load("default_forward_type: BFLOAT16 ");
  const NetSpec& net = *solver.train.net;
  EXPECT_EQ(StorageOf(net, net.layers[0]), caffe::BFLOAT16);
  EXPECT_EQ(StorageOf(net, net.layers[1]), caffe::FLOAT);
}

TEST_F(SolverStorageTest, TheCommandLineSetsIt) {
  Write(R"(default_forward_type: BFLOAT16 layer { name: "a" type: "T" top: "a" })");
  const SolverSpec plain = Load("");
  EXPECT_EQ(StorageOf(*plain.train.net, plain.train.net->layers[0]), caffe::BFLOAT16);
  const SolverSpec solver = Load("", {"default_forward_type=FLOAT"});
  EXPECT_EQ(StorageOf(*solver.train.net, solver.train.net->layers[0]), caffe::FLOAT);
  Overrides overrides({"default_forward_type=FLOAT"});
  const NetSpec net = LoadNet(folder_.path() + "/net.prototxt", &overrides);
  EXPECT_EQ(StorageOf(net, net.layers[0]), caffe::FLOAT);
}

TEST_F(SolverStorageTest, RefusesOtherTypesAtTheirLines) {
  Write(R"(layer { name: "a" type: "T" top: "a" })");
  EXPECT_EQ(Short(CatchConfig([&] { Load("\ndefault_forward_type: UINT "); }).text),
            "s.prototxt:2:1: default_forward_type is UINT; it must be FLOAT, FLOAT16 or BFLOAT16");
}

}  // namespace
}  // namespace trainer

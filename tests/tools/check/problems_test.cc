// Net files from other people: one run reports every problem of a file, and control characters in a
// file do not reach the terminal.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "in_process.h"
#include "job.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr char kFork[] = R"(name: "fork"
layer { name: "data" type: "AnnotatedData" top: "data" top: "label"
  annotated_data_param { batch_sampler { max_trials: 50 } } }
layer { name: "up" type: "Upsample" bottom: "data" top: "up"
  upsample_param { scale: 2 } }
layer { name: "ip" type: "InnerProduct" bottom: "up" top: "ip"
  inner_product_param { num_ouput: 3 } }
)";

TEST(ProblemsTest, EveryVerbTellsAllOfAForksFileLayersFirst) {
  Job job;
  job.net = kFork;
  job.Write();
  const auto expected = ElementsAre(
      HasSubstr("net.prototxt:2:22: layer 'data' (AnnotatedData): this type belongs "
                "to a fork of Caffe (SSD), and this program does not have it. It is a "
                "data layer"),
      HasSubstr("net.prototxt:4:20: layer 'up' (Upsample): this type belongs to a fork"),
      HasSubstr("net.prototxt:3:3: layer has no field 'annotated_data_param'. It "
                "belongs to a fork of Caffe (SSD)"),
      HasSubstr("net.prototxt:5:3: layer has no field 'upsample_param'"),
      HasSubstr("net.prototxt:7:25: inner_product_param has no field 'num_ouput'. Did "
                "you mean 'num_output'?"));
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"show", "--model=net.prototxt"},
                                             {"draw", "--model=net.prototxt", "--out=n.svg"},
                                             {"train", "--solver=solver.prototxt"}}) {
    const Outcome outcome = RunHere(command, job.options());
    EXPECT_EQ(outcome.exit_code, 78) << command[0];
    EXPECT_THAT(outcome.Errors(), expected) << command[0];
  }
  for (const char* flag : {"--model=net.prototxt", "--solver=solver.prototxt"}) {
    const Outcome check = RunHere({"check", flag}, job.options());
    EXPECT_EQ(check.exit_code, 78);
    EXPECT_THAT(check.out, HasSubstr("check: 5 errors, 0 warnings")) << check.out;
  }
}

TEST(ProblemsTest, EveryLayerThatCannotBePlannedIsTold) {
  Job job;
  job.net = R"(layer { name: "d" type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 } } }
layer { name: "a" type: "InnerProduct" bottom: "x" top: "a" }
layer { name: "s" type: "Softmax" bottom: "x" top: "s" softmax_param { axis: 7 } }
)";
  job.Write();
  const Outcome outcome = RunHere({"show", "--model=net.prototxt"}, job.options());
  EXPECT_EQ(outcome.exit_code, 78);
  EXPECT_THAT(outcome.Errors(),
              ElementsAre(HasSubstr("layer 'a' (InnerProduct)"), HasSubstr("layer 's' (Softmax)")));
}

TEST(ProblemsTest, ShapesNeedNoFillers) {
  Job job;
  job.net =
      R"(layer { name: "d" type: "DummyData" top: "x" dummy_data_param { shape { dim: 2 dim: 3 } } }
layer { name: "a" type: "InnerProduct" bottom: "x" top: "a"
  inner_product_param { num_output: 2 weight_filler { type: "one" } bias_filler { type: "two" } } }
)";
  job.Write();
  const Outcome show = RunHere({"show", "--model=net.prototxt"}, job.options());
  EXPECT_EQ(show.exit_code, 0) << show.err;  // shapes need no values
}

TEST(ProblemsTest, ControlCharactersOfNamesReachNoTerminal) {
  Job job;
  job.net = R"(name: "n\033[2J"
layer { name: "d\033[31m\nI1122 forged" type: "DummyData" top: "x\033\233" top: "y\t"
  dummy_data_param { shape { dim: 2 dim: 3 } shape { dim: 2 } } }
layer { name: "ip\007" type: "InnerProduct" bottom: "x\033\233" top: "ip\007"
  inner_product_param { num_output: 3 } }
layer { name: "loss\r" type: "SoftmaxWithLoss" bottom: "ip\007" bottom: "y\t" top: "loss\010" }
)";
  job.Write();
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"show", "--model=net.prototxt"},
           {"show", "--model=net.prototxt", "--json"},
           {"plan", "--model=net.prototxt"},
           {"time", "--model=net.prototxt", "--iterations=1"},
           {"draw", "--model=net.prototxt", "--out=n.dot"},
           {"check", "--model=net.prototxt"},
           {"deploy", "--model=net.prototxt", "--out=deploy.prototxt"},
           {"train", "--solver=solver.prototxt"}}) {
    const Outcome outcome = RunHere(command, job.options());
    const std::string all = outcome.out + outcome.err;
    for (const char* bytes : {"\x1b", "\a", "\r", "\b", "\nI1122 forged"}) {
      EXPECT_THAT(all, Not(HasSubstr(bytes))) << command[0];
    }
    EXPECT_THAT(all, HasSubstr("\\x")) << command[0];
  }
}

}  // namespace
}  // namespace trainer

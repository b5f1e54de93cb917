// `trainer dataset text`, and training on its records.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "in_process.h"
#include "program.h"
#include "support/temp_folder.h"

namespace trainer {
namespace {

using testing::HasSubstr;

// A causal net without positions: the last character determines the next one.
constexpr char kTextNet[] = R"(name: "Text"
layer { name: "text" type: "HDF5Data" top: "data" top: "label" include { phase: TRAIN }
        hdf5_data_param { source: "train.txt" batch_size: 8 shuffle: true } }
layer { name: "text" type: "HDF5Data" top: "data" top: "label" include { phase: TEST }
        hdf5_data_param { source: "val.txt" batch_size: 4 } }
layer { name: "embed" type: "Embed" bottom: "data" top: "embed"
        embed_param { input_dim: 256 num_output: 16 weight_filler { type: "xavier" } } }
layer { name: "attention" type: "MultiHeadAttention" bottom: "embed" top: "attention"
        attention_param { num_heads: 2 causal: true weight_filler { type: "xavier" } } }
layer { name: "sum" type: "Eltwise" bottom: "embed" bottom: "attention" top: "sum" }
layer { name: "score" type: "InnerProduct" bottom: "sum" top: "score"
        inner_product_param { num_output: 256 axis: 2 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "score" bottom: "label" top: "loss"
        softmax_param { axis: 2 } }
layer { name: "accuracy" type: "Accuracy" bottom: "score" bottom: "label" top: "accuracy"
        include { phase: TEST } accuracy_param { axis: 2 } }
)";
constexpr char kTextSolver[] = R"(net: "net.prototxt" type: "Adam" base_lr: 0.02 momentum: 0.9
lr_policy: "fixed" max_iter: 100 test_iter: 1 test_interval: 100 test_initialization: false
display: 0 snapshot_prefix: "t" solver_mode: CPU random_seed: 1
)";

class TextVerbTest : public testing::Test {
 protected:
  Outcome Run(std::vector<std::string> arguments) const {
    RunOptions options;
    options.folder = folder_.path();
    return RunHere(arguments, options);
  }

  TempFolder folder_;
};

TEST_F(TextVerbTest, ATextIsLearned) {
  std::string text;
  for (int i = 0; i < 201; ++i) text += "abcdefgh";
  folder_.Write("t.txt", text);
  folder_.Write("net.prototxt", kTextNet);
  folder_.Write("solver.prototxt", kTextSolver);
  const Outcome made = Run({"dataset", "text", "t.txt", "train.h5", "--length=16", "--val=10%"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_EQ(made.out,
            "train.h5: 90 records of 16 characters\nval.h5: 10 records of 16 characters\n"
            "left out: 7 characters at the end\n");
  const Outcome trained = Run({"train", "--solver=solver.prototxt", "--log=live"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_THAT(trained.out + trained.err, HasSubstr("test accuracy 1,"));
}

TEST_F(TextVerbTest, RefusesInOneLine) {
  folder_.Write("t.txt", "abc");
  const Outcome shorter = Run({"dataset", "text", "t.txt", "train.h5"});
  EXPECT_EQ(shorter.exit_code, 65);
  EXPECT_THAT(shorter.err, HasSubstr("t.txt: the text has 3 characters, but a record needs 129"));
  const Outcome kind = Run({"dataset", "text", "t.txt", "train_lmdb", "--length=2"});
  EXPECT_EQ(kind.exit_code, 64);
  EXPECT_THAT(kind.err, HasSubstr("a text is written to an HDF5 file (NAME.h5)"));
  const Outcome length = Run({"dataset", "text", "t.txt", "train.h5", "--length=0"});
  EXPECT_EQ(length.exit_code, 64);
  EXPECT_THAT(length.err, HasSubstr("must be from 1 to 16777216"));
  EXPECT_THAT(folder_.Names(), testing::ElementsAre("t.txt"));
}

}  // namespace
}  // namespace trainer

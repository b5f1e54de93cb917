#include "trainer/base/text/text.h"

#include <gtest/gtest.h>

#include "trainer/base/error/error.h"
#include "trainer/base/text/synonyms.h"

namespace trainer {
namespace {

TEST(EscapeControlTest, WritesOutEveryControlCharacter) {
  EXPECT_EQ(EscapeControl("a\x1b[2Jb\nc\td\x7f"), "a\\x1b[2Jb\\x0ac\\x09d\\x7f");
  EXPECT_EQ(EscapeControl("\xc2\x9b"
                          "31m \xc3\xa4 \xc2"),
            "\\x9b31m \xc3\xa4 \xc2");
}

TEST(JoinNumbersTest, WritesTheShortestText) {
  EXPECT_EQ(JoinNumbers(std::vector<float>{103.53f, 0.1f, -2}), "103.53, 0.1, -2");
  EXPECT_EQ(JoinNumbers(std::vector<float>{1, 2}, " "), "1 2");
  EXPECT_EQ(JoinNumbers({}), "");
}

TEST(CountedTest, WritesThePlural) {
  EXPECT_EQ(Counted(1, "record"), "1 record");
  EXPECT_EQ(Counted(size_t{0}, "record"), "0 records");
  EXPECT_EQ(Counted(int64_t{2}, "batch"), "2 batches");
}

TEST(ErrorTest, ANameWithANewlineMakesNoSecondLineButAQuotedLineDoes) {
  const Error error(ErrorCode::kConfig, {"n.prototxt", 3}, "layer 'a\nb' is bad\n  line\n  ^");
  EXPECT_STREQ(error.what(), "n.prototxt:3: layer 'a\\x0ab' is bad\n  line\n  ^");
}

TEST(SynonymTest, NamesOfOtherTrainersLeadToOursWhereThereIsOne) {
  const std::string solver[] = {"base_lr", "max_iter", "type", "random_seed"};
  EXPECT_EQ(Synonym("learning_rate", solver), "base_lr");
  EXPECT_EQ(Synonym("learningRate", solver), "base_lr");
  EXPECT_EQ(Synonym("lr", solver), "base_lr");
  EXPECT_EQ(Synonym("optimizer", solver), "type");
  EXPECT_EQ(Synonym("seed", solver), "random_seed");
  EXPECT_EQ(Synonym("batch_size", solver), "");
  EXPECT_EQ(Synonym("", solver), "");
  EXPECT_EQ(Synonym("lr optimizer", solver), "");
  const std::string fillers[] = {"constant", "gaussian", "msra", "xavier"};
  EXPECT_EQ(DidYouMean("he", fillers), " Did you mean 'msra'?");
  EXPECT_EQ(DidYouMean("glorot_uniform", fillers), " Did you mean 'xavier'?");
  EXPECT_EQ(DidYouMean("xaveir", fillers), " Did you mean 'xavier'?");
  // A word can have several meanings; the candidates decide.
  const std::string policies[] = {"fixed", "poly"}, types[] = {"InnerProduct", "Pooling"};
  EXPECT_EQ(Synonym("linear", policies), "poly");
  EXPECT_EQ(Synonym("linear", types), "InnerProduct");
  const std::string losses[] = {"HingeLoss", "SigmoidFocalLoss", "SoftmaxFocalLoss"};
  EXPECT_EQ(DidYouMean("FocalLoss", losses), " Did you mean 'SoftmaxFocalLoss'?");
}

TEST(NearestTest, TheEndingOfAMessageIsNoSign) {
  const std::string messages[] = {"elu_param", "pooling_param", "scale_param", "slice_param"};
  EXPECT_EQ(Nearest("dicer_param", messages), "");
  EXPECT_EQ(Nearest("vocal_param", messages), "");
  EXPECT_EQ(Nearest("slise_param", messages), "slice_param");
  EXPECT_EQ(Nearest("poling_param", messages), "pooling_param");
  EXPECT_EQ(Nearest("el_param", messages), "elu_param");
}

TEST(SynonymTest, WhatHasNoFieldHasAdvice) {
  EXPECT_NE(AdviceFor("max_epochs").find("The length of a run is max_epoch, or max_iter"),
            std::string_view::npos);
  EXPECT_NE(AdviceFor("batch_size").find("--batch=N"), std::string_view::npos);
  EXPECT_EQ(AdviceFor("base_lr"), "");
}

}  // namespace
}  // namespace trainer

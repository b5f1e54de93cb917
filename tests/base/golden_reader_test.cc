#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/golden.h"
#include "trainer/base/error/error.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(GoldenReaderTest, ReadsTextsNumbersAndTensorsOfEachCase) {
  const auto cases = ParseGolden("g.txt",
                                 "# made by hand\n"
                                 "case a\n"
                                 "text layer\ntype: \"ReLU\"\n\nend\n"
                                 "tensor x 2 3 : 1 2\n3 -0.5\n1e-3 6\n"
                                 "tensor loss : 1.25\n"
                                 "number rate 0.5\n"
                                 "\ncase b of 2\ntensor x 1 : 7\n");
  ASSERT_EQ(cases.size(), 2u);
  EXPECT_EQ(cases[0].name, "a");
  EXPECT_EQ(cases[0].Text("layer"), "type: \"ReLU\"\n\n");
  EXPECT_THAT(cases[0].Tensor("x").dims, ElementsAre(2, 3));
  EXPECT_THAT(cases[0].Tensor("x").values, ElementsAre(1, 2, 3, -0.5f, 1e-3f, 6));
  EXPECT_THAT(cases[0].Tensor("loss").dims, ElementsAre());
  EXPECT_THAT(cases[0].Tensor("loss").values, ElementsAre(1.25f));
  EXPECT_EQ(cases[0].Number("rate"), 0.5);
  EXPECT_EQ(cases[1].name, "b of 2");
  EXPECT_THAT(cases[1].Tensor("x").values, ElementsAre(7));
}

TEST(GoldenReaderTest, RefusesDamagedFilesByLine) {
  const auto expect = [](const char* content, const char* message) {
    EXPECT_THAT([&] { ParseGolden("g.txt", content); }, ThrowsMessage<Error>(HasSubstr(message)))
        << content;
  };
  expect("case a\ntensor x 2 2 : 1 2 3\n", "g.txt:2: 3 numbers where the shape asks for 4");
  expect("case a\ntensor x 2 : 1 2 3\n", "g.txt:2: 3 numbers where the shape asks for 2");
  expect("case a\ntensor x 2 : 1 b\n", "g.txt:2: a number was expected");
  expect("case a\ntext layer\ntype\n", "g.txt:3: the text has no 'end'");
  expect("tensor x : 1\n", "g.txt:1: 'tensor' comes before the first case");
  expect("case a\nnumbers x\n", "g.txt:2: unknown keyword 'numbers'");
  expect("case\n", "g.txt:1: 'case' needs a name");
}

TEST(GoldenReaderTest, NamesTheCaseThatLacksAnEntry) {
  const auto cases = ParseGolden("g.txt", "case a\n");
  EXPECT_THAT([&] { cases[0].Tensor("x"); },
              ThrowsMessage<Error>("golden case 'a' has no entry 'x'"));
}

TEST(GoldenReaderTest, ReadsEveryFileOfTheTree) {
  for (const char* file :
       {"layers/losses/accuracy.txt", "layers/products/convolution.txt",
        "layers/products/inner_product.txt", "nets/nets.txt", "layers/shapes/pooling.txt",
        "layers/activations/relu.txt", "rules/sgd.txt", "layers/activations/softmax.txt",
        "layers/losses/softmax_loss.txt"}) {
    EXPECT_FALSE(ReadGolden(file).empty()) << file;
  }
}

// The values are from scripts/golden/golden_file.py: both sides must compute the same numbers.
TEST(GoldenReaderTest, HashesAsThePythonSideDoes) {
  EXPECT_EQ(HashWord(0, 0), 0u);
  EXPECT_EQ(HashWord(3, 77), 1948870443u);
  EXPECT_FLOAT_EQ(HashWeight(0, 5, 0.3), 0.17824698984622955f);
  EXPECT_EQ(HashLabel(5, 10), 7u);
  int sum = 0;
  for (uint32_t pixel = 0; pixel < 784; ++pixel) sum += HashPixel(5, 7, pixel, 784);
  EXPECT_EQ(sum, 100701);
}

}  // namespace
}  // namespace trainer

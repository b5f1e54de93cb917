// Generative models: training, drawing samples, and the likelihood of data.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <regex>

#include "in_process.h"
#include "job.h"
#include "trainer/base/text/text.h"
#include "trainer/hdf5/reader.h"
#include "trainer/image/image.h"

namespace trainer {
namespace {

using testing::HasSubstr;

constexpr char kScale[] = "transform_param { scale: 0.0039215684 }";

// A restricted Boltzmann machine on the job's digits, with drawn pixels.
class GenerativeTest : public testing::Test {
 protected:
  GenerativeTest() {
    const auto data = [](const char* phase, const char* source) {
      return Join("layer { name: 'data' type: 'Data' top: 'data' include { phase: ", phase, " } ",
                  kScale, " data_param { source: 'data/", source,
                  "_lmdb' backend: LMDB batch_size: 10 } }\n");
    };
    job_.net = data("TRAIN", "train") + data("TEST", "test") +
               "layer { name: 'draw' type: 'Noise' bottom: 'data' top: 'x' noise_param { kind: "
               "BERNOULLI in_test: true } }\n"
               "layer { name: 'rbm' type: 'RBM' bottom: 'x' top: 'h' top: 'error' top: "
               "'free_energy' loss_weight: 0 loss_weight: 1 loss_weight: 0\n"
               "rbm_param { num_output: 8 weight_filler { type: 'gaussian' std: 0.01 } } }\n"
               "layer { name: 'end' type: 'Silence' bottom: 'h' }\n";
    job_.solver =
        "net: 'net.prototxt' type: 'CD' cd_param { persistent: true } base_lr: 0.05 lr_policy: "
        "'fixed' max_iter: 30 snapshot_prefix: 'rbm' random_seed: 1\n";
    job_.Write();
  }
  Outcome Run(std::vector<std::string> arguments) const {
    return RunHere(arguments, job_.options());
  }
  Outcome Train(const std::vector<std::string>& more = {}) const { return job_.Train(more); }
  static double NumberAfter(const std::string& text, const std::string& name) {
    const size_t at = text.find(name);
    EXPECT_NE(at, text.npos) << name << " in " << text;
    return at == text.npos ? NAN : std::strtod(text.c_str() + at + name.size(), nullptr);
  }

  Job job_;
};

TEST_F(GenerativeTest, TheEstimatedLikelihoodIsThatOfTheExactSum) {
  const Outcome trained = Train();
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const std::vector<std::string> ask = {"likelihood", "--model=net.prototxt",
                                        "--weights=rbm_iter_30.caffemodel", "--iterations=3"};
  std::vector<std::string> exact = ask, estimated = ask;
  exact.push_back("--exact");
  estimated.push_back("--steps=500");
  const Outcome sum = Run(exact), annealed = Run(estimated);
  ASSERT_EQ(sum.exit_code, 0) << sum.err;
  ASSERT_EQ(annealed.exit_code, 0) << annealed.err;
  EXPECT_THAT(sum.out, HasSubstr("rbm: 784 visible and 8 hidden units\n"));
  EXPECT_THAT(sum.out, HasSubstr(", the sum over all states\n"));
  EXPECT_NEAR(NumberAfter(annealed.out, "log-likelihood "), NumberAfter(sum.out, "log-likelihood "),
              1);
  EXPECT_LT(NumberAfter(sum.out, "log-likelihood "), -100);
  EXPECT_THAT(annealed.out, HasSubstr("the mean of 30 records in 3 batches\n"));
  EXPECT_THAT(annealed.out, HasSubstr(" within three (100 chains, 500 distributions)\n"));
  EXPECT_THAT(annealed.err, HasSubstr("over 500 distributions (--chains, --steps); --iterations=3 "
                                      "sets only the number of test batches"));
}

TEST_F(GenerativeTest, SamplesAreASheetAndAFileWhoseLikelihoodCanBeAsked) {
  ASSERT_EQ(Train().exit_code, 0);
  const std::vector<std::string> draw = {
      "sample",         "--model=net.prototxt", "--weights=rbm_iter_30.caffemodel",
      "--steps=5",      "--count=12",           "--samples=samples.h5",
      "--out=sheet.png"};
  const Outcome drawn = Run(draw);
  ASSERT_EQ(drawn.exit_code, 0) << drawn.err;
  Image sheet;
  DecodeImage(ReadText(job_.folder() / "sheet.png"), ColorMode::kAsStored, {}, "sheet", &sheet);
  EXPECT_EQ(sheet.channels, 1);
  EXPECT_GT(sheet.width, 4 * 28);
  const Hdf5Reader file(job_.folder() / "samples.h5");
  EXPECT_THAT(file.Array("samples").dims(), testing::ElementsAre(12, 1, 28, 28));
  const Outcome parzen = Run({"likelihood", "--model=net.prototxt", "--blob=data",
                              "--samples=samples.h5", "--iterations=4", "--validation=2"});
  ASSERT_EQ(parzen.exit_code, 0) << parzen.err;
  EXPECT_THAT(parzen.out, HasSubstr("the mean of 20 records"));
  for (const char* start : {"--start=data", "--start=zeros"}) {
    std::vector<std::string> other = draw;
    other.push_back(start);
    other.push_back("--force");
    EXPECT_EQ(Run(other).exit_code, 0) << start;
  }
  const Outcome again = Run(draw);
  EXPECT_EQ(again.exit_code, 73);
  EXPECT_THAT(again.err, HasSubstr("sheet.png"));
}

TEST_F(GenerativeTest, AVisibleUnitOutsideZeroToOneNamesItsRecord) {
  job_.net = Edited(job_.net, "bottom: 'x'", "bottom: 'data'");
  for (int i = 0; i < 2; ++i) job_.net = Edited(job_.net, kScale, "");
  job_.Write();
  ExpectRefused(job_, Train(), 65, "net.prototxt:4:1: layer 'rbm' (RBM): visible unit",
                "of data/train_lmdb");
}

TEST_F(GenerativeTest, WarnsOfZeroWeightsThatDoNotLearn) {
  const std::string below =
      "layer { name: 'below' type: 'InnerProduct' bottom: 'data' top: 'low' param { lr_mult: 0 } "
      "param { lr_mult: 0 } inner_product_param { num_output: 30 } }\n"
      "layer { name: 'chance' type: 'Sigmoid' bottom: 'low' top: 'low' }\n";
  const size_t at = job_.net.find("layer { name: 'draw'");
  job_.net.insert(at, below);
  job_.net.replace(job_.net.find("bottom: 'data' top: 'x'"), 14, "bottom: 'low'");
  job_.Write();
  const Outcome forgotten = Train();
  EXPECT_EQ(forgotten.exit_code, 0) << forgotten.err;
  EXPECT_THAT(forgotten.err, HasSubstr("The weights of below are all zero and are not trained "
                                       "(lr_mult: 0); load them from a file with --weights"));
  job_.net.replace(job_.net.find("num_output: 30"), 14,
                   "num_output: 30 weight_filler { type: 'xavier' }");
  job_.Write();
  EXPECT_THAT(Train().err, testing::Not(HasSubstr("all zero")));
}

TEST_F(GenerativeTest, RefusesAStageThatNoLayerAsksFor) {
  Train();
  job_.net +=
      "layer { name: 'a' type: 'Silence' bottom: 'x' include { stage: 'deep' } }\n"
      "layer { name: 'b' type: 'Silence' bottom: 'x' exclude { stage: 'flat' not_stage: 'no' } }\n";
  job_.Write();
  const std::vector<std::string> ask = {"likelihood", "--model=net.prototxt", "--exact",
                                        "--weights=rbm_iter_30.caffemodel", "--iterations=1"};
  const auto with_stage = [&](const std::string& stage) {
    std::vector<std::string> arguments = ask;
    arguments.push_back("--stage=" + stage);
    return Run(arguments);
  };
  const Outcome refused = with_stage("deeq");
  EXPECT_EQ(refused.exit_code, 64);
  EXPECT_THAT(refused.err,
              HasSubstr("--stage=deeq: no layer of net.prototxt uses this stage. Did you mean "
                        "'deep'? The layers use deep, flat, no"));
  EXPECT_EQ(with_stage("deep").exit_code, 0);
  EXPECT_EQ(with_stage("other,flat").exit_code, 0);
  const Outcome trained = Train({"--stage=deeq"});
  EXPECT_EQ(trained.exit_code, 64);
  EXPECT_THAT(trained.err, HasSubstr("no layer of net.prototxt uses this stage. Did you mean "
                                     "'deep'?"));
}

TEST_F(GenerativeTest, RefusesMissingWeightsAndOtherImageFormats) {
  EXPECT_THAT(Run({"likelihood", "--model=net.prototxt"}).err, HasSubstr("--weights is missing"));
  WriteText(job_.folder() / "w", "weights");
  const Outcome jpeg = Run({"sample", "--model=net.prototxt", "--weights=w", "--out=s.jpg"});
  EXPECT_EQ(jpeg.exit_code, 64);
  EXPECT_THAT(jpeg.err, HasSubstr("--out=s.jpg: the sheet is a PNG file"));
}

}  // namespace
}  // namespace trainer

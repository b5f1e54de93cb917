// Findings of a preflight check in the first pass.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "preflight_job.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

TEST(CheckPassTest, FindsALossThatIsNotFinite) {
  PreflightJob job;
  job.net = Edited(job.net, "bottom: \"data\"\n  top: \"ip\"", "bottom: \"log\"\n  top: \"ip\"");
  job.net = Edited(job.net, "layer {\n  name: \"ip\"",
                   "layer { name: \"log\" type: \"Log\" bottom: \"data\" top: \"log\" }\n"
                   "layer {\n  name: \"ip\"");
  const CheckOutcome outcome = job.Check();
  EXPECT_EQ(outcome.exit_code, 80) << outcome.out;
  EXPECT_THAT(outcome.Errors(),
              ElementsAre(AllOf(StartsWith("net.prototxt:20:1: the loss of the training net is "),
                                HasSubstr("the first layer with an output that is not finite is "
                                          "layer 'log' (Log)"))));
  EXPECT_THAT(outcome.Warnings(), testing::Contains(HasSubstr("the loss of the test net #0 is ")));
}

TEST(CheckPassTest, WarnsOfAStartFarFromGuessingAndOfDeadLayers) {
  PreflightJob job;
  job.net =
      Edited(job.net, "transform_param { scale: 0.00390625 }", "transform_param { scale: 10 }");
  const CheckOutcome large = job.Check();
  EXPECT_EQ(large.exit_code, 0);
  EXPECT_THAT(large.Warnings(),
              testing::Contains(HasSubstr("guessing among 10 classes would give 2.30259")));
  job.net = Edited(job.net, "scale: 10", "scale: 0.004");
  job.net = Edited(job.net, "bottom: \"data\"\n  top: \"ip\"", "bottom: \"low\"\n  top: \"ip\"");
  job.net = Edited(job.net, "    weight_filler { type: \"xavier\" }\n", "");
  job.net = Edited(job.net, "layer {\n  name: \"ip\"",
                   "layer { name: \"low\" type: \"InnerProduct\" bottom: \"data\" top: \"low\" "
                   "inner_product_param { num_output: 5 weight_filler { type: \"xavier\" } } }\n"
                   "layer {\n  name: \"ip\"");
  const CheckOutcome dead = job.Check();
  EXPECT_THAT(dead.Warnings(),
              ElementsAre(HasSubstr("the gradient of layer 'low' (parameter 0) is zero")));
}

TEST(CheckPassTest, WritesNoHdf5Output) {
  PreflightJob job;
  job.net += R"(
layer { name: "out" type: "HDF5Output" bottom: "ip" bottom: "label"
        hdf5_output_param { file_name: "out.h5" } })";
  job.ExpectOne(78, "another layer of this run writes 'out.h5'; give each layer its own file");
  EXPECT_THAT(job.Files("out"), IsEmpty());
  job.net = Edited(job.net, "\"out.h5\"", "\"out.h5\" } include { phase: TRAIN");
  EXPECT_EQ(job.Check().exit_code, 0);
  EXPECT_THAT(job.Files("out"), IsEmpty());
}

}  // namespace
}  // namespace trainer

// The command `trainer export` to ONNX.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "in_process.h"
#include "job.h"
#include "onnx.pb.h"
#include "trainer/base/file/file.h"

namespace trainer {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint64_t kMaxOnnxFile = 1 << 24;

class OnnxExportTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(job_.Train({"--run=run"}).exit_code, 0);
    ASSERT_EQ(Run({"deploy", "--model=net.prototxt", "--out=deploy.prototxt"}).exit_code, 0);
  }
  Outcome Run(const std::vector<std::string>& command) const {
    return RunHere(command, job_.options());
  }
  Outcome Export(const std::vector<std::string>& more) const {
    std::vector<std::string> command = {"export", "--out=m.onnx"};
    command.insert(command.end(), more.begin(), more.end());
    return Run(command);
  }
  onnx::ModelProto Model() const {
    onnx::ModelProto model;
    EXPECT_TRUE(model.ParseFromString(ReadFile(job_.folder() / "m.onnx", kMaxOnnxFile)));
    return model;
  }

  Job job_;
  const std::vector<std::string> files_ = {"--model=deploy.prototxt",
                                           "--weights=snap_iter_20.caffemodel"};
};

TEST_F(OnnxExportTest, WritesTheNetAndComparesIt) {
  const Outcome outcome = Export(files_);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("Wrote m.onnx: "));
  EXPECT_THAT(outcome.err, HasSubstr("The batch size is free"));
  EXPECT_THAT(outcome.err, HasSubstr("Read back: the largest difference from the net is "));
  EXPECT_EQ(Model().graph().output(0).name(), "prob");
}

TEST_F(OnnxExportTest, AFileOfWeightsOfAnotherModelStays) {
  job_.folder().Write("m.onnx.data", "other");
  const Outcome outcome = Export(files_);
  EXPECT_EQ(outcome.exit_code, 73);
  EXPECT_THAT(outcome.err, HasSubstr("m.onnx.data: the file already exists"));
  EXPECT_EQ(Export({"--run=run", "--force"}).exit_code, 0);
}

TEST_F(OnnxExportTest, ARunGivesNetAndWeights) {
  const Outcome outcome = Export({"--run=run", "--preprocess", "--batch=2"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const onnx::GraphProto graph = Model().graph();
  EXPECT_EQ(graph.input(0).type().tensor_type().shape().dim(0).dim_value(), 2);
  EXPECT_EQ(graph.node(0).name(), "preprocess/Mul");
}

TEST_F(OnnxExportTest, APackGivesNetAndWeights) {
  WriteText(job_.folder() / "names.txt", "nil\nunit\npair\n3\n4\n5\n6\n7\n8\nnine lives\n");
  ASSERT_EQ(Run({"pack", "--run=run", "--labels=names.txt", "--out=m.trainer"}).exit_code, 0);
  const Outcome outcome = Export({"--model=m.trainer"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::string of_pack = ReadText(job_.folder() / "m.onnx");
  ASSERT_EQ(Export({"--run=run", "--force"}).exit_code, 0);
  onnx::ModelProto packed;
  ASSERT_TRUE(packed.ParseFromString(of_pack));
  const auto names =
      std::ranges::find(packed.metadata_props(), "names", &onnx::StringStringEntryProto::key);
  ASSERT_NE(names, packed.metadata_props().end());
  EXPECT_THAT(names->value(), HasSubstr("9: 'nine lives'"));
  EXPECT_EQ(packed.graph().node_size(), Model().graph().node_size());
  EXPECT_EQ(packed.graph().initializer(0).raw_data(), Model().graph().initializer(0).raw_data());
}

TEST_F(OnnxExportTest, WrongFlagsAreRefusedAndNothingIsWritten) {
  const auto refused = [&](const std::vector<std::string>& more, int code, const std::string& start,
                           const std::string& part) {
    std::vector<std::string> flags = files_;
    flags.insert(flags.end(), more.begin(), more.end());  // the last of two equal flags counts
    ExpectRefused(job_, Export(flags), code, start, part);
    EXPECT_THAT(job_.Files("m.onnx"), IsEmpty());
  };
  refused({"--out=m.pb"}, 64, "--out=m.pb: ", "must end in .onnx");
  refused({"--opset=12"}, 64, "--opset", "13");
  refused({"--batch=many"}, 64, "--batch=many: ", "give free, fixed, or a number of items");
  refused({"--output=probb"}, 64, "--output: the net has no blob 'probb'.", "'prob'");
  refused({"--weights=none.caffemodel"}, 66, "", "none.caffemodel");
  WriteText(job_.folder() / "more.prototxt",
            ReadText(job_.folder() / "deploy.prototxt") +
                "layer { name: 'more' type: 'InnerProduct' bottom: 'prob' top: 'more' "
                "inner_product_param { num_output: 2 } }");
  refused({"--model=more.prototxt"}, 65,
          "snap_iter_20.caffemodel: ", "the weights of 1 layer of the net are missing: more");
  ExpectRefused(job_, Export({}), 64, "'trainer export' needs --model=FILE", "--run=DIR");
  ExpectRefused(job_, Export({"--model=net.prototxt", "--weights=snap_iter_20.caffemodel"}), 78, "",
                "net.prototxt: this net reads its own data, as for training");
}

}  // namespace
}  // namespace trainer

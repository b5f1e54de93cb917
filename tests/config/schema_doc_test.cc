#include "trainer/config/schema_doc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "config/config_testing.h"
#include "solver.pb.h"
#include "state.pb.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

TEST(SchemaDocTest, DescribesTypesDefaultsAndMeaning) {
  const MessageDoc doc = DescribeMessage("PoolingParameter");
  EXPECT_EQ(doc.name, "PoolingParameter");
  EXPECT_EQ(doc.comment, "Pooling: reduces each window of pixels to one value.");
  ASSERT_GE(doc.fields.size(), 3u);
  EXPECT_EQ(doc.fields[0].type, "MAX | AVE | STOCHASTIC");
  EXPECT_EQ(doc.fields[0].default_value, "MAX");
  EXPECT_EQ(doc.fields[1].name, "kernel_size");
  EXPECT_EQ(doc.fields[1].default_value, "");
  EXPECT_EQ(doc.fields[2].default_value, "1");
  EXPECT_EQ(doc.fields[2].comment, "Stride in pixels.");
}

TEST(SchemaDocTest, KnowsRepeatedAndRequiredFields) {
  EXPECT_EQ(DescribeMessage("ClipParameter").fields[0].type, "required float");
  EXPECT_EQ(DescribeMessage("CropParameter").fields[1].type, "repeated uint32");
  EXPECT_EQ(DescribeMessage("FillerParameter").fields[0].default_value, "\"constant\"");
}

TEST(SchemaDocTest, ALayersFieldStandsForItsMessage) {
  EXPECT_EQ(Explain("relu_param"), Explain("ReLUParameter"));
  EXPECT_EQ(Explain("elu_param"),
            "ELUParameter: ELU: x, or alpha * (e^x - 1) below 0.\n"
            "  field   type   default  meaning\n"
            "  alpha   float  1        Factor on e^x - 1.\n"
            "  lambda  float  1        Factor on the result (NVIDIA Caffe).\n");
}

TEST(SchemaDocTest, TablesFitInEightyColumns) {
  for (const char* name : {"LayerParameter", "SolverParameter", "convolution_param",
                           "batch_norm_param", "transform_param", "data_param"}) {
    std::istringstream lines(Explain(name));
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(line.size(), 80u) << name << ": " << line;
      EXPECT_FALSE(line.ends_with(' ')) << name << ": " << line;
    }
  }
  EXPECT_THAT(Explain("convolution_param"), HasSubstr(" default\n      meaning\n"));
  EXPECT_THAT(Explain("convolution_param"),
              HasSubstr("\n      Zero padding: one for all axes or one per axis. Default: 0.\n"));
  EXPECT_THAT(Explain("pooling_param"), HasSubstr("MAX | AVE | STOCHASTIC. "));
}

TEST(SchemaDocTest, AnUnknownNameIsRefusedWithTheNearest) {
  const Caught caught = Catch([] { Explain("convolutoin_param"); });
  EXPECT_EQ(caught.code, ErrorCode::kUsage);
  EXPECT_EQ(caught.text,
            "there is no message or layer field 'convolutoin_param'. Did you mean "
            "'convolution_param'?");
}

TEST(SchemaDocTest, FindsTheParametersOfALayerType) {
  EXPECT_THAT(ParamsOfType("Deconvolution"), ElementsAre("convolution_param"));
  EXPECT_THAT(ParamsOfType("Data"), ElementsAre("transform_param", "data_param"));
  EXPECT_THAT(ParamsOfType("SoftmaxWithLoss"), ElementsAre("loss_param", "softmax_param"));
  EXPECT_THAT(ParamsOfType("Silence"), IsEmpty());
}

TEST(SchemaDocTest, EveryFieldHasAComment) {
  for (const auto* root :
       {caffe::SolverParameter::descriptor()->file(), caffe::SolverState::descriptor()->file()}) {
    std::vector<const google::protobuf::FileDescriptor*> files = {root};
    for (size_t f = 0; f < files.size(); ++f) {
      for (int d = 0; d < files[f]->dependency_count(); ++d) {
        files.push_back(files[f]->dependency(d));
      }
      for (int m = 0; m < files[f]->message_type_count(); ++m) {
        const std::string name = files[f]->message_type(m)->name();
        const MessageDoc doc = DescribeMessage(name);
        EXPECT_NE(doc.comment, "") << name;
        for (const FieldDoc& field : doc.fields) {
          EXPECT_NE(field.comment, "") << name << "." << field.name;
          EXPECT_LT(field.comment.size(), 160u) << name << "." << field.name;
        }
      }
    }
  }
}

}  // namespace
}  // namespace trainer

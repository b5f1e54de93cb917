// `trainer check` on solvers and nets with an unreasonable value in each field: it says that all is
// good or what is wrong, with the exit code of `train`. It never crashes, hangs or asks for a bug
// report.

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "in_process.h"
#include "program.h"
#include "solver.pb.h"
#include "support/hostile_values.h"
#include "support/temp_folder.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::TextFormat;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

constexpr char kHostileSolverNet[] = R"(name: "small"
layer { name: "data" type: "DummyData" top: "x" top: "label"
        dummy_data_param { shape { dim: 4 dim: 6 } shape { dim: 4 }
          data_filler { type: "gaussian" } data_filler { type: "constant" value: 1 } } }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
        inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
)";

constexpr char kHostileSolverSolver[] =
    R"(net: "net.prototxt" test_iter: 1 test_interval: 10 base_lr: 0.01
lr_policy: "inv" gamma: 0.01 power: 0.75 momentum: 0.9 max_iter: 20 stepsize: 5 random_seed: 7
snapshot_prefix: "snap" solver_mode: CPU
)";

std::string TextOfHostileSolver(const Message& message) {
  std::string text;
  TextFormat::PrintToString(message, &text);
  return text;
}

class HostileCheck {
 public:
  // Tries each hostile value in `field` of `part`, which is `whole` or a part of it.
  void Vary(const Message& whole, Message* part, const FieldDescriptor* field,
            const std::string& file) {
    const std::unique_ptr<Message> before(part->New());
    before->CopyFrom(*part);
    for (const std::string& value : HostileValues(field)) {
      for (const std::string& text : {value, Join("[", value, ", ", value, "]")}) {
        if (text != value && !field->is_repeated()) continue;
        const std::unique_ptr<Message> parsed(part->New());
        TextFormat::Parser parser;
        parser.AllowPartialMessage(true);
        if (!parser.ParseFromString(Join(field->name(), ": ", text), parsed.get())) continue;
        part->GetReflection()->ClearField(part, field);
        part->MergeFrom(*parsed);
        WriteText(folder_ / file, TextOfHostileSolver(whole));
        Check(Join(field->full_name(), ": ", text));
        part->CopyFrom(*before);
      }
    }
  }

  const TempFolder& folder() const { return folder_; }

 private:
  void Check(const std::string& what) const {
    const Outcome outcome =
        RunHere({"check", "--solver=solver.prototxt"}, {.folder = folder_.path()});
    EXPECT_EQ(outcome.signal, 0) << what << "\n" << outcome.out << outcome.err;
    EXPECT_THAT(outcome.exit_code, AnyOf(0, 65, 66, 69, 73, 74, 77, 78, 80, 81))
        << what << "\n"
        << outcome.out << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("check: ")) << what;
    EXPECT_THAT(outcome.out + outcome.err, Not(HasSubstr("internal error"))) << what;
    const bool not_finite = what.ends_with("nan") || what.ends_with("inf");
    if (not_finite) {
      EXPECT_EQ(outcome.exit_code, 78) << what;
      EXPECT_THAT(outcome.out, HasSubstr("; it must be a finite number")) << what;
    }
  }

  TempFolder folder_;
};

class HostileFieldTest : public testing::TestWithParam<std::string> {};

std::string FieldName(const testing::TestParamInfo<std::string>& info) { return info.param; }

std::vector<std::string> PlainFields(const google::protobuf::Descriptor* type) {
  std::vector<std::string> names;
  for (int i = 0; i < type->field_count(); ++i) {
    if (type->field(i)->message_type() == nullptr) names.push_back(type->field(i)->name());
  }
  return names;
}

class HostileSolverTest : public HostileFieldTest {};
INSTANTIATE_TEST_SUITE_P(With, HostileSolverTest,
                         testing::ValuesIn(PlainFields(caffe::SolverParameter::descriptor())),
                         FieldName);

TEST_P(HostileSolverTest, IsGoodOrRefused) {
  HostileCheck check;
  WriteText(check.folder() / "net.prototxt", kHostileSolverNet);
  caffe::SolverParameter solver;
  ASSERT_TRUE(TextFormat::ParseFromString(kHostileSolverSolver, &solver));
  check.Vary(solver, &solver, solver.GetDescriptor()->FindFieldByName(GetParam()),
             "solver.prototxt");
}

class HostileNetTest : public HostileFieldTest {};
INSTANTIATE_TEST_SUITE_P(With, HostileNetTest,
                         testing::ValuesIn(PlainFields(caffe::NetParameter::descriptor())),
                         FieldName);

TEST_P(HostileNetTest, IsGoodOrRefused) {
  HostileCheck check;
  WriteText(check.folder() / "solver.prototxt", kHostileSolverSolver);
  caffe::NetParameter net;
  ASSERT_TRUE(TextFormat::ParseFromString(kHostileSolverNet, &net));
  check.Vary(net, &net, net.GetDescriptor()->FindFieldByName(GetParam()), "net.prototxt");
}

TEST(HostileLayerTest, OfAnyTypeIsGoodOrRefused) {
  HostileCheck check;
  WriteText(check.folder() / "solver.prototxt", kHostileSolverSolver);
  caffe::NetParameter net;
  ASSERT_TRUE(TextFormat::ParseFromString(kHostileSolverNet, &net));
  caffe::LayerParameter* layer = net.mutable_layer(1);
  Message* const parts[] = {layer, layer->add_param(), layer->add_include(),
                            layer->mutable_inner_product_param()->mutable_weight_filler()};
  for (Message* part : parts) {
    for (const std::string& name : PlainFields(part->GetDescriptor())) {
      check.Vary(net, part, part->GetDescriptor()->FindFieldByName(name), "net.prototxt");
    }
  }
}

}  // namespace
}  // namespace trainer

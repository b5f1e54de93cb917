#include "config/field_numbers.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <string>

#include "solver.pb.h"
#include "state.pb.h"

namespace trainer {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;

// Checks every name and number of a table against the compiled schema, and collects the fields.
class Table {
 public:
  void Check(const char* text) {
    // These calls link the files: the pool knows a file only if its code is linked.
    caffe::SolverParameter::descriptor();
    caffe::SolverState::descriptor();
    std::istringstream words(text);
    for (std::string word; words >> word;) {
      const size_t equals = word.find('=');
      if (equals == std::string::npos) {
        Open(word);
      } else {
        CheckPair(word.substr(0, equals), std::stoi(word.substr(equals + 1)));
      }
    }
  }

  int pairs() const { return pairs_; }
  const std::set<const FieldDescriptor*>& fields() const { return fields_; }

 private:
  void Open(const std::string& name) {
    message_ = DescriptorPool::generated_pool()->FindMessageTypeByName("caffe." + name);
    values_ = DescriptorPool::generated_pool()->FindEnumTypeByName("caffe." + name);
    where_ = name;
    EXPECT_TRUE(message_ != nullptr || values_ != nullptr) << name;
  }

  void CheckPair(const std::string& name, int number) {
    ++pairs_;
    if (values_ != nullptr) {
      const auto* value = values_->FindValueByName(name);
      ASSERT_NE(value, nullptr) << where_ << "." << name;
      EXPECT_EQ(value->number(), number) << where_ << "." << name;
      return;
    }
    ASSERT_NE(message_, nullptr) << where_;
    const FieldDescriptor* field = message_->FindFieldByName(name);
    ASSERT_NE(field, nullptr) << where_ << "." << name;
    EXPECT_EQ(field->number(), number) << where_ << "." << name;
    fields_.insert(field);
  }

  const Descriptor* message_ = nullptr;
  const EnumDescriptor* values_ = nullptr;
  std::string where_;
  int pairs_ = 0;
  std::set<const FieldDescriptor*> fields_;
};

TEST(FieldNumbersTest, AreThoseOfBvlcCaffe) {
  Table table;
  table.Check(kBvlcNumbers);
  EXPECT_EQ(table.fields().size(), 423u);
}

TEST(FieldNumbersTest, AreThoseOfNvidiaCaffeWhereBvlcHasNone) {
  Table table;
  table.Check(kNvidiaNumbers);
  EXPECT_GT(table.pairs(), 80);
}

TEST(FieldNumbersTest, AreThoseOfOtherForksWhereBothHaveNone) {
  Table table;
  table.Check(kForkNumbers);
  EXPECT_GT(table.pairs(), 60);
}

TEST(FieldNumbersTest, AllOthersAreFarAway) {
  Table table;
  table.Check(kBvlcNumbers);
  table.Check(kNvidiaNumbers);
  table.Check(kForkNumbers);
  std::set<const Descriptor*> messages;
  for (const FieldDescriptor* field : table.fields()) messages.insert(field->containing_type());
  for (const Descriptor* message : messages) {
    for (int i = 0; i < message->field_count(); ++i) {
      if (table.fields().count(message->field(i)) > 0) continue;
      EXPECT_GE(message->field(i)->number(), 20000) << message->field(i)->full_name();
    }
  }
}

TEST(FieldNumbersTest, OnlyArraysOfNumbersArePacked) {
  const auto packed = [](const char* name) {
    return DescriptorPool::generated_pool()->FindFieldByName(name)->is_packed();
  };
  for (const char* name : {"caffe.BlobShape.dim", "caffe.BlobProto.data", "caffe.BlobProto.diff",
                           "caffe.BlobProto.double_data", "caffe.BlobProto.double_diff"}) {
    EXPECT_TRUE(packed(name)) << name;
  }
  for (const char* name :
       {"caffe.Datum.float_data", "caffe.LayerParameter.loss_weight",
        "caffe.ConvolutionParameter.kernel_size", "caffe.SolverParameter.stepvalue"}) {
    EXPECT_FALSE(packed(name)) << name;
  }
}

TEST(FieldNumbersTest, DefaultsAreBvlcCaffes) {
  const caffe::SolverParameter solver;
  EXPECT_EQ(solver.solver_mode(), caffe::SolverParameter::GPU);
  EXPECT_EQ(solver.snapshot_format(), caffe::SolverParameter::BINARYPROTO);
  EXPECT_FLOAT_EQ(solver.momentum2(), 0.999f);
  EXPECT_FLOAT_EQ(solver.delta(), 1e-8f);
  EXPECT_TRUE(solver.test_initialization());
  EXPECT_EQ(caffe::NetState().phase(), caffe::TEST);
  EXPECT_EQ(caffe::DataParameter().backend(), caffe::DataParameter::LEVELDB);
  EXPECT_EQ(caffe::DataParameter().prefetch(), 4u);
  EXPECT_FLOAT_EQ(caffe::BatchNormParameter().moving_average_fraction(), 0.999f);
  EXPECT_EQ(caffe::LossParameter().normalization(), caffe::LossParameter::VALID);
  EXPECT_EQ(caffe::FillerParameter().type(), "constant");
  EXPECT_EQ(caffe::PoolingParameter().round_mode(), caffe::PoolingParameter::CEIL);
}

TEST(FieldNumbersTest, ChecksumsAreWrittenLast) {
  for (const Descriptor* message :
       {caffe::NetParameter::descriptor(), caffe::SolverState::descriptor()}) {
    const int crc = message->FindFieldByName("crc32c")->number();
    for (int i = 0; i < message->field_count(); ++i) {
      EXPECT_LE(message->field(i)->number(), crc) << message->field(i)->full_name();
    }
  }
}

}  // namespace
}  // namespace trainer

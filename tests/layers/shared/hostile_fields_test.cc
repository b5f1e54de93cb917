// Tests every field of every layer with invalid or extreme values. The layer works or throws an
// Error with a message; it never crashes, hangs, throws anything else or allocates too much memory.

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "support/golden.h"
#include "support/hostile_values.h"
#include "support/net_text.h"
#include "support/wrapped_device.h"
#include "trainer/base/text/text.h"
#include "trainer/net/net.h"

namespace trainer {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// The CPU with a limit of 8 MiB per allocation, so that larger requests fail.
class SmallDevice final : public WrappedDevice {
 public:
  void* Allocate(size_t bytes) const override {
    if (bytes > size_t{8} << 20) throw Error(ErrorCode::kResource, Join("no ", bytes, " bytes"));
    return WrappedDevice::Allocate(bytes);
  }
};

// A layer with its inputs, from a golden case.
struct Example {
  caffe::LayerParameter layer;
  std::string sources;  // layers that provide its inputs
  std::string file;
};

std::string SourceText(const std::string& name, const GoldenTensor& tensor) {
  std::string dims;
  for (const int64_t dim : tensor.dims) dims += Join("dim: ", dim, " ");
  return Join("layer { name: '", name, "' type: 'TestSource' top: '", name,
              "' parameter_param { shape { ", dims, "} } }\n");
}

bool ReadExample(const GoldenCase& golden, Example* out) {
  if (golden.texts.count("layer") == 0) return false;
  if (!google::protobuf::TextFormat::ParseFromString(golden.Text("layer"), &out->layer))
    return false;
  out->layer.set_name("it");
  out->layer.clear_loss_weight();
  for (const char* name : {"x", "x1", "x2", "x3"}) {
    if (golden.tensors.count(name) == 0) continue;
    out->layer.add_bottom(name);
    out->sources += SourceText(name, golden.Tensor(name));
  }
  for (const char* name : {"y", "y1", "y2"}) {
    if (golden.tensors.count(name) > 0) out->layer.add_top(name);
  }
  if (out->layer.top_size() == 0) out->layer.add_top("y");
  return true;
}

// Returns the first example of each type.
std::map<std::string, Example> Examples() {
  std::map<std::string, Example> examples;
  for (const auto& entry : std::filesystem::recursive_directory_iterator("tests/golden/layers")) {
    if (entry.path().extension() != ".txt") continue;
    const std::string file = entry.path().lexically_relative("tests/golden").string();
    for (const GoldenCase& golden : ReadGolden(file)) {
      Example example;
      if (!ReadExample(golden, &example)) continue;
      example.file = Join(file, ", ", golden.name);
      examples.emplace(example.layer.type(), example);
    }
  }
  return examples;
}

// Returns "" if the net ran or was refused, else the problem.
std::string Try(const Example& example, const caffe::LayerParameter& layer) {
  static const SmallDevice device;
  std::string text;
  google::protobuf::TextFormat::PrintToString(layer, &text);
  try {
    const NetSpec spec = NetFromText(example.sources + "layer {\n" + text + "}\n");
    ParamStore params(device);
    NetOptions options;
    options.state = StateOf(caffe::TRAIN);
    options.training = true;
    options.log = false;
    Net net(spec, options, device, params);
    net.Forward();
    net.Backward();
  } catch (const Error& e) {
    return e.code() == ErrorCode::kInternal ? e.what() : "";
  } catch (const std::exception& e) {
    return Join("not an Error: ", e.what());
  }
  return "";
}

class Hostile {
 public:
  explicit Hostile(const Example& example) : example_(example), layer_(example.layer) {}

  // Tries every field of `message`, which is part of the layer, and of its submessages.
  void Vary(Message* message, const std::string& path) {
    for (int i = 0; i < message->GetDescriptor()->field_count(); ++i) {
      const FieldDescriptor* field = message->GetDescriptor()->field(i);
      const std::string name = Join(path, ".", field->name());
      const std::unique_ptr<Message> before(message->New());
      before->CopyFrom(*message);
      if (field->message_type() != nullptr) {
        const auto* reflection = message->GetReflection();
        Vary(field->is_repeated() ? reflection->AddMessage(message, field)
                                  : reflection->MutableMessage(message, field),
             name);
      }
      for (const std::string& value : HostileValues(field)) {
        Check(message, field, value, name);
        message->CopyFrom(*before);
        if (field->is_repeated()) Check(message, field, Join(value, ", ", value), name);
        message->CopyFrom(*before);
      }
      message->CopyFrom(*before);
    }
  }

  caffe::LayerParameter& layer() { return layer_; }
  int tried() const { return tried_; }

 private:
  void Check(Message* message, const FieldDescriptor* field, const std::string& value,
             const std::string& name) {
    message->GetReflection()->ClearField(message, field);
    const std::string text = field->is_repeated() ? Join(field->name(), ": [", value, "]")
                                                  : Join(field->name(), ": ", value);
    google::protobuf::TextFormat::Parser parser;
    parser.AllowPartialMessage(true);
    const std::unique_ptr<Message> part(message->New());
    if (!parser.ParseFromString(text, part.get())) return;
    message->MergeFrom(*part);
    ++tried_;
    const std::string wrong = Try(example_, layer_);
    EXPECT_EQ(wrong, "") << example_.file << ": " << name << " = " << value;
  }

  const Example& example_;
  caffe::LayerParameter layer_;
  int tried_ = 0;
};

class HostileFieldsTest : public testing::TestWithParam<std::string> {};

TEST_P(HostileFieldsTest, WorkOrAreRefused) {
  static const std::map<std::string, Example> examples = Examples();
  const auto found = examples.find(GetParam());
  if (found == examples.end()) GTEST_SKIP() << "no golden values to start from";
  Hostile hostile(found->second);
  ASSERT_EQ(Try(found->second, hostile.layer()), "") << found->second.file;
  const std::string param(LayerDocs().at(GetParam()).param);
  for (const std::string& field : SplitList(param + ",loss_param,softmax_param")) {
    const FieldDescriptor* message = caffe::LayerParameter::descriptor()->FindFieldByName(field);
    ASSERT_NE(message, nullptr) << field;
    hostile.Vary(hostile.layer().GetReflection()->MutableMessage(&hostile.layer(), message), field);
    hostile.layer() = found->second.layer;
  }
}

std::vector<std::string> Types() {
  std::vector<std::string> types;
  for (const auto& entry : LayerDocs()) types.push_back(entry.first);
  return types;
}

INSTANTIATE_TEST_SUITE_P(Of, HostileFieldsTest, testing::ValuesIn(Types()),
                         [](const auto& type) { return type.param; });

}  // namespace
}  // namespace trainer

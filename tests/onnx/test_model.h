#pragma once
// Builds models for the tests.

#include <initializer_list>
#include <string>
#include <vector>

#include "trainer/onnx/import_onnx.h"

namespace trainer {

// Builds a model node by node.
class TestModel {
 public:
  explicit TestModel(int64_t opset = 17) {
    proto_.set_ir_version(8);
    proto_.add_opset_import()->set_version(opset);
  }

  // Adds an input. A size of -1 is free.
  TestModel& Input(const std::string& name, std::initializer_list<int64_t> dims) {
    onnx::ValueInfoProto* const input = proto_.mutable_graph()->add_input();
    input->set_name(name);
    auto* const type = input->mutable_type()->mutable_tensor_type();
    type->set_elem_type(onnx::TensorProto::FLOAT);
    for (const int64_t dim : dims) {
      auto* const axis = type->mutable_shape()->add_dim();
      if (dim >= 0) axis->set_dim_value(dim);
      if (dim < 0) axis->set_dim_param("free");
    }
    return *this;
  }
  TestModel& Output(const std::string& name) {
    proto_.mutable_graph()->add_output()->set_name(name);
    return *this;
  }
  TestModel& Floats(const std::string& name, std::initializer_list<int64_t> dims,
                    const std::vector<float>& values) {
    onnx::TensorProto* const tensor = AddTensor(name, dims, onnx::TensorProto::FLOAT);
    tensor->mutable_float_data()->Add(values.begin(), values.end());
    return *this;
  }
  TestModel& Ints(const std::string& name, const std::vector<int64_t>& values) {
    const auto count = static_cast<int64_t>(values.size());
    onnx::TensorProto* const tensor = AddTensor(name, {count}, onnx::TensorProto::INT64);
    tensor->mutable_int64_data()->Add(values.begin(), values.end());
    return *this;
  }
  TestModel& Node(const std::string& op, const std::vector<std::string>& inputs,
                  const std::vector<std::string>& outputs, const std::string& name = "") {
    node_ = proto_.mutable_graph()->add_node();
    node_->set_op_type(op);
    node_->set_name(name);
    for (const std::string& input : inputs) node_->add_input(input);
    for (const std::string& output : outputs) node_->add_output(output);
    return *this;
  }
  // These add attributes to the last node.
  TestModel& With(const std::string& attribute, std::initializer_list<int64_t> values) {
    onnx::AttributeProto* const to = Attribute(attribute, onnx::AttributeProto::INTS);
    for (const int64_t value : values) to->add_ints(value);
    return *this;
  }
  TestModel& WithInt(const std::string& attribute, int64_t value) {
    Attribute(attribute, onnx::AttributeProto::INT)->set_i(value);
    return *this;
  }
  TestModel& WithFloat(const std::string& attribute, float value) {
    Attribute(attribute, onnx::AttributeProto::FLOAT)->set_f(value);
    return *this;
  }
  TestModel& WithText(const std::string& attribute, const std::string& value) {
    Attribute(attribute, onnx::AttributeProto::STRING)->set_s(value);
    return *this;
  }

  onnx::ModelProto& proto() { return proto_; }
  ImportedNet Import(const OnnxImportOptions& options = {}) const {
    return ImportOnnx(proto_, "model.onnx", options);
  }

 private:
  onnx::TensorProto* AddTensor(const std::string& name, std::initializer_list<int64_t> dims,
                               onnx::TensorProto::DataType type) {
    onnx::TensorProto* const tensor = proto_.mutable_graph()->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(type);
    for (const int64_t dim : dims) tensor->add_dims(dim);
    return tensor;
  }
  onnx::AttributeProto* Attribute(const std::string& name,
                                  onnx::AttributeProto::AttributeType type) {
    onnx::AttributeProto* const attribute = node_->add_attribute();
    attribute->set_name(name);
    attribute->set_type(type);
    return attribute;
  }

  onnx::ModelProto proto_;
  onnx::NodeProto* node_ = nullptr;
};

// Returns start, start + 1, ...
inline std::vector<float> Rising(size_t count, float start = 0) {
  std::vector<float> values;
  for (size_t i = 0; i < count; ++i) values.push_back(start + static_cast<float>(i));
  return values;
}

}  // namespace trainer

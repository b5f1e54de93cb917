#pragma once
// What the fields of solvers and nets mean, from the comments of the schema. Built into the
// program: no file is read.

#include <string>
#include <vector>

#include "trainer/config/layer_spec.h"

namespace trainer {

struct FieldDoc {
  std::string name;
  std::string type;  // "uint32", "repeated uint32", "MAX | AVE | STOCHASTIC", a message's name
  std::string default_value;  // empty when the field has none
  std::string comment;
};

struct MessageDoc {
  std::string name;
  std::string comment;
  std::vector<FieldDoc> fields;
};

// Whether DescribeMessage knows `name`.
bool IsMessage(const std::string& name);

// `name` is a message ("ConvolutionParameter", "SolverParameter"), or a field of a layer that holds
// one ("convolution_param"). Throws kUsage, naming the nearest, when it is neither.
MessageDoc DescribeMessage(const std::string& name);

// The same as a table of lines: field, type, default, meaning.
std::string Explain(const std::string& name);

// The fields of a layer that hold the parameters of layers of this type: "Softmax" gives
// {"softmax_param"}. Empty for a type without parameters.
std::vector<std::string> ParamsOfType(const std::string& type);

// Refuses, at its line, a field of the layer's messages that the schema marks with "Not supported:
// WHY" and that is set to another value than its default. The pages show the same mark.
void RefuseUnsupported(const LayerSpec& layer);

}  // namespace trainer

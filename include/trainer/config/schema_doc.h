#pragma once
// The meaning of the fields of solvers and nets, from the comments of the schema. The comments are
// built into the program, so no file is read.

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

// Returns whether DescribeMessage knows `name`.
bool IsMessage(const std::string& name);

// Describes a message. `name` is a message ("ConvolutionParameter", "SolverParameter"), or a field
// of a layer that holds one ("convolution_param"). Throws kUsage, with the nearest name, if it is
// neither.
MessageDoc DescribeMessage(const std::string& name);

// Returns this description as a table of lines: field, type, default, meaning.
std::string Explain(const std::string& name);

// Returns the fields of a layer that hold the parameters of layers of this type: {"softmax_param"}
// for "Softmax". Returns nothing for a type without parameters.
std::vector<std::string> ParamsOfType(const std::string& type);

// Throws an error, at the field's line, if the layer's messages set a field to another value than
// its default and the schema marks that field with "Not supported: WHY". The pages show the same
// mark.
void RefuseUnsupported(const LayerSpec& layer);

}  // namespace trainer

#pragma once
// An example of each layer type, for the pages of `trainer layers`.

#include <string>
#include <vector>

namespace trainer {

struct LayerExample {
  std::string text;                  // the layer, as a prototxt has it
  std::vector<std::string> inputs;   // "data (8, 3, 32, 32)"
  std::vector<std::string> outputs;  // the same; empty for a layer that reads files
  std::vector<std::string> weights;  // shapes alone, in the order of a .caffemodel
};

// Plans the example's net, so that the shapes are those that training would have. Throws kInternal
// for a type without an example.
LayerExample ExampleOf(const std::string& type);

}  // namespace trainer

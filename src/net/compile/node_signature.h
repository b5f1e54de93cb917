#pragma once
// What a layer says of itself, and the functions that ask it.

#include <span>
#include <vector>

#include "trainer/layers/layer.h"
#include "trainer/net/net.h"

namespace trainer {

struct Node;

// Memory for one node, in bytes.
struct MemoryNeeds {
  size_t scratch = 0, workspace = 0, upload = 0;
};

// What a layer declared in one call of Setup.
struct NodeSignature {
  struct Input {
    bool kept = false, no_gradient = false;
    bool operator==(const Input&) const = default;
  };
  struct Output {
    Shape shape;
    DType dtype = DType::kF32;
    int view_of = -1;  // an input's number
    bool persists = false, is_dynamic = false, keeps_f32 = false, kept = false;
  };
  std::vector<Input> in;
  std::vector<Output> out;
  bool in_place = false;
  int grad_in_place = -1;  // the input whose gradient may share the memory of gradient out 0
  MemoryNeeds needs;
  size_t state_bytes = 0;
  std::vector<float> constants;
  std::vector<Param*> params;

  // Whether a layer that described itself so for other input shapes can go on with the memory and
  // the passes that were planned for `other`.
  bool AgreesWith(const NodeSignature& other) const;
};

// The input shapes that a layer is asked about, in the order of its bottoms.
using InputShapes = std::vector<const Shape*>;

// Asks a node's layer. `types`: those of the inputs. Parameters that the store does not have yet
// are added to it and to `fresh`; where that is null, there are none. Throws what the layer throws,
// with its name and line.
NodeSignature SetupNode(const Node& node, int number, const InputShapes& shapes,
                        std::span<const DType> types, const NetOptions& options, ParamStore& params,
                        std::vector<Param*>* new_params);

// Lets the layer make its device plans for `said`. The needs of both together.
MemoryNeeds PrepareNode(const Node& node, const NodeSignature& signature, const NetOptions& options,
                        const Device& device);

}  // namespace trainer

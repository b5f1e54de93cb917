#pragma once
// What a layer says of itself, and the functions that ask it.

#include <span>
#include <vector>

#include "trainer/layers/layer.h"
#include "trainer/net/net.h"

namespace trainer {

struct StepInfo;

// Memory for one step, in bytes.
struct DeviceNeeds {
  size_t scratch = 0, workspace = 0, staging = 0;
};

// What a layer declared in one call of Describe.
struct Description {
  struct Input {
    bool kept = false, no_gradient = false;
    bool operator==(const Input&) const = default;
  };
  struct Output {
    Shape shape;
    DType dtype = DType::kF32;
    int view_of = -1;  // an input's number
    bool persists = false, may_shrink = false, stays_f32 = false, kept = false;
  };
  std::vector<Input> in;
  std::vector<Output> out;
  bool in_place = false;
  int grad_in_place = -1;  // the input whose gradient may share the memory of gradient out 0
  DeviceNeeds needs;
  size_t state_bytes = 0;
  std::vector<float> constants;
  std::vector<Param*> params;

  // Whether a layer that described itself so for other input shapes can go on with the memory and
  // the passes that were planned for `other`.
  bool AgreesWith(const Description& other) const;
};

// The input shapes that a layer is asked about, in the order of its bottoms.
using InputShapes = std::vector<const Shape*>;

// Asks a step's layer. `types`: those of the inputs. Parameters that the store does not have yet
// are added to it and to `fresh`; where that is null, there are none. Throws what the layer throws,
// with its name and line.
Description Describe(const StepInfo& step, int number, const InputShapes& shapes,
                     std::span<const DType> types, const NetOptions& options, ParamStore& params,
                     std::vector<Param*>* fresh);

// Lets the layer make its device plans for `said`. The needs of both together.
DeviceNeeds Prepare(const StepInfo& step, const Description& said, const NetOptions& options,
                    const Device& device);

}  // namespace trainer

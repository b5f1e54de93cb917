#pragma once
// The interface of a layer. One file in src/layers/ defines and registers one type; no other file
// is edited: see src/extend.md, "How to add a layer".

#include <concepts>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/backend/device/device.h"
#include "trainer/base/registry.h"
#include "trainer/config/layer_spec.h"
#include "trainer/input/input_env.h"
#include "trainer/layers/run_context.h"
#include "trainer/tensor/tensor.h"

namespace trainer {

class DataLayer;  // of trainer/layers/data_layer.h

// The order of a parameter's numbers in memory, compared with the file's row-major order.
struct ParamLayout {
  // When channels > 0, each row of the file holds (channels, height, width) and memory holds
  // (height, width, channels): the columns of an inner product that reads an image.
  int64_t channels = 0, height = 0, width = 0;
  bool operator==(const ParamLayout&) const = default;
};

struct ParamOptions {
  ParamLayout layout;
  // for parameters without a `param` entry in the prototxt
  float default_lr_mult = 1, default_decay_mult = 1;
  // Forward updates it in training (running averages); replicas average it.
  bool is_running_stat = false;
};

// The argument of Setup: a layer reads the shapes of its inputs here and declares its outputs,
// parameters, memory and the data that Backward reads. Setup uses no device and no memory, so that
// the net may repeat it: after a fusion, and during a run whenever the shape of an input changes.
// Inputs and outputs count from 0 in prototxt order.
class SetupContext {
 public:
  virtual ~SetupContext() = default;

  virtual caffe::Phase phase() const = 0;
  virtual bool training() const = 0;  // whether this net ever runs backward
  virtual int NumInputs() const = 0;
  virtual int NumOutputs() const = 0;
  virtual const Shape& Input(int i) const = 0;
  virtual DType InputType(int i) const = 0;

  // Every output needs one call of Output or OutputView.
  virtual void Output(int i, const Shape& shape, DType dtype = DType::kF32) = 0;
  // Output i is input j's memory under another shape with the same memory order, and so is its
  // gradient; Forward and Backward need not do anything. If several outputs view one input (Split)
  // and more than one of them has a gradient, Backward is called: it sums the gradients for which
  // HasGradOutput is true into GradInput(j), which may share memory with the first of them.
  virtual void OutputView(int i, int j, const Shape& shape) = 0;
  // Output i shares its memory with nothing: elements that Forward does not write keep their values
  // from the last pass.
  virtual void OutputPersists(int i) = 0;
  // Output i may be smaller in a pass than described here: see RunContext::Resize.
  virtual void OutputIsDynamic(int i) = 0;
  // Output i holds labels, indices or coordinates, which 16 bits would change. It is stored as f32,
  // and so are values computed from such outputs alone, whatever type the files choose.
  virtual void OutputKeepsF32(int i) = 0;

  // Backward reads this input's or output's data.
  virtual void SaveInput(int i) = 0;
  virtual void SaveOutput(int i) = 0;
  // Output 0 may share input 0's memory, and gradient in 0 the memory of gradient out 0. Only for
  // equal shapes and types, if Forward and Backward read each element before they write it. If the
  // net shares the memory, a saved input holds the output's numbers when Backward runs.
  virtual void AllowInPlace() = 0;
  // Gradient in i may share the memory of gradient out 0, which has the same shape and type.
  virtual void AllowGradInPlace(int i) = 0;
  // This input never gets a gradient: a label, an index. The net refuses propagate_down for it.
  virtual void NotDifferentiable(int i) = 0;
  // Declares parameter number 0, 1, ... in order; returns its number.
  virtual int Param(std::string_view name, const Shape& shape, const caffe::FillerParameter& filler,
                    const ParamOptions& options = {}) = 0;

  // Memory for the layer's own loops on any device. Prepare requests the memory of a device's plan.
  // Scratch lasts for one call of Forward or Backward; the largest request counts.
  virtual void Scratch(size_t bytes) = 0;
  // Lasts from Forward to Backward; without `training`, for Forward only. Requests add up.
  virtual void Workspace(size_t bytes) = 0;
  // Memory of this layer's own for the whole run, which passes data from one pass to the next;
  // initially zero. Snapshots store it instead of SaveState's text.
  virtual void State(size_t bytes) = 0;
  // Numbers that every pass reads: the net copies them to the device once. See
  // RunContext::Constants. Call it at most once.
  virtual void Constants(std::span<const float> values) = 0;
};

// The argument of Prepare, in which a layer makes its device plans. Prepare follows the last Setup,
// so that shapes, types and fusion are final.
class PrepareContext {
 public:
  virtual ~PrepareContext() = default;

  virtual const Device& device() const = 0;
  virtual bool training() const = 0;
  // Like the functions of SetupContext, for the memory of the plans. Workspace is added to Setup's
  // request.
  virtual void Scratch(size_t bytes) = 0;
  virtual void Workspace(size_t bytes) = 0;
  // Memory of this layer's own for the whole run, for data that is copied to the device before the
  // pass that uses it. Snapshots do not store it.
  virtual void UploadMemory(size_t bytes) = 0;
};

// The argument of a layer's constructor in addition to its spec.
struct LayerEnv {
  InputEnv reading;  // its key is the same for all replicas, unlike RunContext::rng_key
};

// One layer of one net, used by one thread. The calls are: the constructor, Setup (any number of
// times, with Fuse between them), Prepare, and passes. Setup and Prepare are repeated, in this
// order, when the shape of an input changes.
class Layer {
 public:
  virtual ~Layer() = default;

  // Checks the inputs and declares outputs, parameters and memory. Throws kConfig via LayerSpec.
  virtual void Setup(SetupContext& ctx) = 0;
  // Makes the device's plans for the shapes of the last Setup. A layer of plain loops need not
  // override it.
  virtual void Prepare(PrepareContext&) {}
  virtual void Forward(const RunContext& run) = 0;
  // Overwrites the requested input gradients and adds to the requested parameter gradients. Not
  // called for a layer that no loss depends on.
  virtual void Backward(const RunContext& run);

  // Throws kData and says what is wrong with `number`, element `index` in memory of the input that
  // the layer checks, as reported to RunContext::input_error. That memory may already hold the next
  // batch.
  [[noreturn]] virtual void ThrowInputError(const RunContext& run, int64_t index,
                                            float number) const;

  // Fuses layers: from now on this layer also computes the layers `next`, in order, in one pass
  // over memory; an empty `next` ends the fusion. Each call replaces the previous one. Returns
  // false and changes nothing if the layer cannot do so, or `device` has no kernel for it. Called
  // after a Setup whose shapes and types are valid: each layer of `next` is the only reader of the
  // output before it, and its own output has the same shape and type. If the call succeeds, the net
  // calls Setup again: further inputs of `next` follow the layer's own, the output is the output of
  // the last one, and RunContext::Epilogue has the rest of them.
  virtual bool Fuse(std::span<const LayerSpec* const> next, const Device& device);

  // Whether the outputs may be dropped after their last reader and recomputed from the inputs for
  // the backward pass, for little work. Used if the files ask for recomputation.
  virtual bool Recomputes() const { return false; }
  // Whether recomputation is possible for any amount of work. Used if a net would not fit into its
  // memory otherwise. The layer's Recompute must give the numbers of Forward bit for bit and have
  // no other effect.
  virtual bool RecomputesAtCost() const { return Recomputes(); }
  virtual void Recompute(const RunContext& run) { Forward(run); }

  // The position of a data source, which a snapshot stores after the last Forward and which is
  // restored before the first. Empty for layers without one.
  virtual std::string SaveState() const { return ""; }
  virtual void RestoreState(const std::string& state);

  // Returns the kernel that was chosen, or "", for `trainer time` and `trainer plan`. Valid after
  // Prepare.
  virtual std::string kernel() const { return ""; }
  // Returns the kernels that declined before it, with their reasons: see
  // Primitive::skipped_kernels.
  virtual std::vector<std::string> skipped_kernels() const { return {}; }
  // Multiply-adds of one forward pass; 0 if they are too few to count.
  virtual int64_t Macs() const { return 0; }
  // This layer, if it reads records; else null.
  virtual DataLayer* data_layer() { return nullptr; }
};

// How many inputs and outputs a type takes; -1 = no upper bound. Checked before the layer is made.
struct LayerArity {
  int min_in = 1, max_in = 1, min_out = 1, max_out = 1;
};

// Allowed storage types of inputs. The net casts inputs of another type.
enum class DtypePolicy : uint8_t {
  kF32,  // f32 only
  // f32, bf16 or f16, one type for all inputs: the one that the files choose (forward_type)
  kConfigurable,
  // like kConfigurable, for a layer that only moves numbers: takes the type of its readers if they
  // agree
  kFollowsConsumers,
  kAny,  // any type, without a cast
};

// The page that `trainer layers NAME` prints, and the facts that the net needs before it plans a
// layer.
struct LayerDoc {
  std::string_view text;   // what it computes, with shapes; the first sentence is used in the table
  std::string_view param;  // its message in LayerParameter ("relu_param"), or ""
  LayerArity arity = {};
  DtypePolicy dtypes = DtypePolicy::kF32;
  // The policy of input 1 if it differs from the others: kF32 or kAny.
  DtypePolicy second_input = DtypePolicy::kConfigurable;

  DtypePolicy PolicyOfInput(int i) const {
    return i == 1 && second_input != DtypePolicy::kConfigurable ? second_input : dtypes;
  }
};

using LayerRegistry = Registry<Layer, const LayerSpec&, const LayerEnv&>;

// Returns the pages, by type.
const std::map<std::string, LayerDoc>& LayerDocs();
void AddLayerDoc(const std::string& type, const LayerDoc& doc);

// Usage: const RegisterLayer<Relu> kRelu("ReLU", {.text = "...", .param = "relu_param"});
template <class T>
struct RegisterLayer {
  RegisterLayer(const char* type, const LayerDoc& doc) {
    LayerRegistry::Get().Add(type, [](const LayerSpec& spec, const LayerEnv& env) {
      if constexpr (std::constructible_from<T, const LayerSpec&, const LayerEnv&>) {
        return std::unique_ptr<Layer>(new T(spec, env));
      } else {
        return std::unique_ptr<Layer>(new T(spec));
      }
    });
    AddLayerDoc(type, doc);
  }
};

// Makes the layer. Throws kConfig at its line for an unknown type (with the nearest name and the
// list of the known ones), and for too few or too many bottoms or tops.
std::unique_ptr<Layer> MakeLayer(const LayerSpec& spec, const LayerEnv& env);

}  // namespace trainer

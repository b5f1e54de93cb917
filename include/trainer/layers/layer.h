#pragma once
// The interface of a layer. One file in src/layers/ defines and registers one type; no other file
// is edited: see src/extend.md, "How to add a layer".

#include <concepts>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/backend/device/device.h"
#include "trainer/base/registry.h"
#include "trainer/config/layer_spec.h"
#include "trainer/input/input_env.h"
#include "trainer/layers/all_reduce.h"
#include "trainer/layers/chain_options.h"
#include "trainer/layers/output_files.h"
#include "trainer/layers/run_context.h"
#include "trainer/layers/setup_context.h"
#include "trainer/tensor/tensor.h"

namespace trainer {

class DataLayer;   // in trainer/layers/data_layer.h
class LabelCount;  // in trainer/layers/label_count.h

// The argument of a layer's constructor in addition to its spec.
struct LayerEnv {
  InputEnv reading;  // its key is the same for all ranks, unlike RunContext::rng_key
  OutputFiles output_files = OutputFiles::kDisabled;
  // The folder of the run's snapshots; "" if it writes none.
  std::string snapshot_folder = {};
  ChainOptions chain = {};  // for layers that learn from samples of their own model
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
  // Computes the outputs of one batch. On an asynchronous device it enqueues the kernels and
  // returns.
  virtual void Forward(const RunContext& run) = 0;
  // Overwrites the requested input gradients and adds to the requested parameter gradients. Not
  // called for a layer that no loss depends on. The default throws kInternal: the layer has no
  // gradient.
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
  // output before it, and its own output has the same type, maybe in another shape. If the call
  // succeeds, the net calls Setup again: further inputs of `next` follow the layer's own, the
  // output is the output of the last one, and RunContext::Epilogue has the rest of them.
  virtual bool Fuse(std::span<const LayerSpec* const> next, const Device& device);

  // Whether the outputs may be dropped after their last reader and recomputed from the inputs for
  // the backward pass, for little work. Used if the files ask for recomputation.
  virtual bool Recomputes() const { return false; }
  // Whether recomputation is possible for any amount of work. Used if a net would not fit into its
  // memory otherwise. The layer's Recompute must give the numbers of Forward bit for bit and have
  // no other effect.
  virtual bool RecomputesAtCost() const { return Recomputes(); }
  // Computes the dropped outputs again, from the inputs of the pass.
  virtual void Recompute(const RunContext& run) { Forward(run); }

  // Returns the position of a data source, which a snapshot stores after the last Forward; "" for
  // layers without one. By default RestoreState throws kBadSnapshot unless `state` is empty.
  virtual std::string SaveState() const { return ""; }
  // Resumes at a position that SaveState returned. Called before the first Forward.
  virtual void RestoreState(const std::string& state);

  // Returns the layout in which the layer's primitive wants a packed copy of parameter 0, if it
  // uses one. Valid after Prepare, as are the next two.
  virtual std::optional<PackedLayout> packed_layout() const { return std::nullopt; }
  // From now on the layer multiplies by `copy`, on the device, whenever *holds is true. The update
  // of the weights writes the copy.
  virtual void UsePackedWeight(const void* /*copy*/, const bool* /*holds*/) {}
  // Allows faster kernels that turn NaN into 0: see ConvPrimitive::AllowDroppedNan.
  virtual void AllowDroppedNan() {}

  // The label counter of a loss that divides by the number of labels that count; null for other
  // layers.
  virtual LabelCount* label_count() { return nullptr; }

  // Gives a layer that UsesAllReduce the all-reduce over the ranks, whose batches have one size.
  // Called before the first pass. It is not called in a net that does not train, nor if the size of
  // the layer's input may change so that some rank skips the layer; the layer then uses its own
  // batch alone.
  virtual void UseAllReduce(const AllReduceFn& /*replicas*/) {}

  // Converts blobs that a fork of Caffe stores in another form into this layer's blobs, in
  // `adapted`. Returns false if `stored` needs no conversion; the caller checks the number and
  // shapes of the blobs. Throws kData with the name of `file`.
  virtual bool AdaptBlobs(const caffe::LayerParameter& /*stored*/, const std::string& /*file*/,
                          caffe::LayerParameter* /*adapted*/) const {
    return false;
  }

  // Called after the snapshot of iteration `iter`, between passes, for layers that write a file
  // with each snapshot. `run` is the context of the forward pass. Throws what writing a file
  // throws.
  virtual void OnSnapshot(const RunContext& /*run*/, int /*iter*/) {}

  // The kernel that was chosen, or "", for `trainer time` and `trainer plan`. Valid after Prepare.
  virtual std::string kernel() const { return ""; }
  // Returns the kernels that declined before it, with their reasons: see
  // Primitive::skipped_kernels.
  virtual std::vector<std::string> skipped_kernels() const { return {}; }
  // Multiply-adds of one forward pass; 0 if they are too few to count.
  virtual int64_t Macs() const { return 0; }
  // Returns this layer if it reads records; else null.
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

  // Returns the policy of input i: second_input for input 1 if it is set, else `dtypes`.
  DtypePolicy PolicyOfInput(int i) const {
    return i == 1 && second_input != DtypePolicy::kConfigurable ? second_input : dtypes;
  }
};

using LayerRegistry = Registry<Layer, const LayerSpec&, const LayerEnv&>;

// Returns the pages, by type.
const std::map<std::string, LayerDoc>& LayerDocs();
// Registers the page of a type. RegisterLayer calls it during static initialisation.
void AddLayerDoc(const std::string& type, const LayerDoc& doc);

// Registers layer class T and its page under the name `type` of net files. T's constructor takes
// (const LayerSpec&) or (const LayerSpec&, const LayerEnv&). Usage:
//   const RegisterLayer<Relu> kRelu("ReLU", {.text = "...", .param = "relu_param"});
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

#pragma once
// Setup and Prepare of a layer declare shapes, parameters, saved tensors and memory here.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/backend/device/device.h"
#include "trainer/config/layer_spec.h"
#include "trainer/tensor/tensor.h"

namespace trainer {

// The order of a parameter's numbers in memory, compared with the file's row-major order.
struct ParamLayout {
  // When channels > 0, each row of the file holds (channels, height, width) and memory holds
  // (height, width, channels): the columns of an inner product that reads an image.
  int64_t channels = 0, height = 0, width = 0;
  bool operator==(const ParamLayout&) const = default;
};

struct ParamOptions {
  ParamLayout layout = {};
  float default_lr_mult = 1, default_decay_mult = 1;  // for parameters without a `param` entry
  // Forward updates it in training (running averages); replicas average it.
  bool is_running_stat = false;
  // Initial values that replace the filler's, if not empty: row-major, in host memory that lives as
  // long as the layer.
  std::span<const float> initial = {};
};

// Memory for one node, in bytes.
struct MemoryNeeds {
  size_t scratch = 0, workspace = 0, upload = 0;
};

// The declarations of one call of Setup.
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
  struct Parameter {
    Shape shape;
    caffe::FillerParameter filler;
    ParamOptions options;
    bool is_bias_or_scale = false;  // see SetupContext::Param
  };
  std::vector<Input> in;
  std::vector<Output> out;
  std::vector<Parameter> params;
  bool in_place = false;
  int grad_in_place = -1;  // the input whose gradient may share the memory of gradient out 0
  MemoryNeeds needs;
  size_t state_bytes = 0;
  std::vector<float> constants;
  bool runs_on_host = false, uses_random = false, writes_files = false;
  bool uses_all_reduce = false;
  const char* why_all_reduce = "";  // see SetupContext::UsesAllReduce

  // Returns true if the memory and the passes that were planned for `other` also serve this
  // signature, whose shapes may be smaller. Parameters and `needs` are not compared.
  bool AgreesWith(const NodeSignature& other) const;
};

// The argument of Setup: a layer reads the shapes of its inputs here and declares its outputs,
// parameters, memory and the data that Backward reads. Setup uses no device and no memory, so that
// the net may repeat it: after a fusion, and during a run whenever the shape of an input changes.
// Inputs and outputs count from 0 in prototxt order.
class SetupContext {
 public:
  // `shapes` and `types` of the inputs, in the order of the bottoms. All must outlive the context.
  SetupContext(const LayerSpec& spec, bool training, std::span<const Shape* const> shapes,
               std::span<const DType> types, size_t outputs, bool is_frozen = false);

  caffe::Phase phase() const { return spec_.proto().phase(); }
  bool training() const { return training_; }  // whether this net ever runs backward
  // Whether the layer is frozen in this net (`freeze: true`, before unfreeze_at). A frozen layer
  // must also keep its running statistics.
  bool is_frozen() const { return is_frozen_; }
  int NumInputs() const { return static_cast<int>(signature_.in.size()); }
  int NumOutputs() const { return static_cast<int>(signature_.out.size()); }
  const Shape& Input(int i) const { return *shapes_[static_cast<size_t>(i)]; }
  DType InputType(int i) const { return types_[static_cast<size_t>(i)]; }

  // Declares the shape and the storage type of output i. Every output needs one call of Output or
  // OutputView. Throws kConfig for an empty shape.
  void Output(int i, const Shape& shape, DType dtype = DType::kF32);
  // Output i is input j's memory under another shape with the same memory order, and so is its
  // gradient; Forward and Backward need not do anything. If several outputs view one input (Split)
  // and more than one of them has a gradient, Backward is called: it sums the gradients for which
  // HasGradOutput is true into GradInput(j), which may share memory with the first of them.
  void OutputView(int i, int j, const Shape& shape);
  // Output i shares its memory with nothing: elements that Forward does not write keep their values
  // from the last pass.
  void OutputPersists(int i) { OutputOf(i).persists = true; }
  // Output i may be smaller in a pass than described here: see RunContext::Resize.
  void OutputIsDynamic(int i) { OutputOf(i).is_dynamic = true; }
  // Output i holds labels, indices or coordinates, which 16 bits would change. It is stored as f32,
  // and so are values computed from such outputs alone, whatever type the files choose.
  void OutputKeepsF32(int i) { OutputOf(i).keeps_f32 = true; }

  // Backward reads the data of input i, so the net keeps it until then.
  void SaveInput(int i) { InputOf(i).kept = true; }
  // Backward reads the data of output i, so the net keeps it until then.
  void SaveOutput(int i) { OutputOf(i).kept = true; }
  // Output 0 may share input 0's memory, and gradient in 0 the memory of gradient out 0. Only for
  // equal shapes and types, if Forward and Backward read each element before they write it. If the
  // net shares the memory, a saved input holds the output's numbers when Backward runs.
  void AllowInPlace();
  // Gradient in i may share the memory of gradient out 0, which has the same shape and type.
  void AllowGradInPlace(int i) { signature_.grad_in_place = i; }
  // This input never gets a gradient: a label, an index. The net refuses propagate_down for it.
  void NotDifferentiable(int i) { InputOf(i).no_gradient = true; }
  // Declares parameter number 0, 1, ... in order; returns its number. A name that contains "bias",
  // or is "scale" (of a normalisation), makes it a parameter that decay_on_bias_and_norm: false
  // excludes from weight decay.
  int Param(std::string_view name, const Shape& shape, const caffe::FillerParameter& filler,
            const ParamOptions& options = {});

  // Memory for the layer's own loops on any device. Prepare requests the memory of primitives.
  // Scratch lasts for one call of Forward or Backward; the largest request counts.
  void Scratch(size_t bytes);
  // Lasts from Forward to Backward; without `training`, for Forward only. Requests add up.
  void Workspace(size_t bytes) { signature_.needs.workspace += bytes; }
  // Memory of this layer's own for the whole run, which passes data from one pass to the next;
  // initially zero. Snapshots store it instead of SaveState's text.
  void State(size_t bytes) { signature_.state_bytes += bytes; }
  // Sets numbers that every pass reads: the net copies them to the device once, for
  // RunContext::Constants. Another call replaces them.
  void Constants(std::span<const float> values);

  // Forward works on the host in each pass: it takes a batch, draws random numbers, reads device
  // results, or makes other device calls than in the pass before. A captured graph cannot contain
  // that, so such a Forward is called in each pass.
  void RunsOnHost() { signature_.runs_on_host = true; }
  // A training pass draws random numbers, so that another pass with the same inputs and weights
  // gives other outputs.
  void UsesRandom() { signature_.uses_random = true; }
  // The layer needs sums over the batches of all ranks, so UseAllReduce is called. `why` is the
  // reason if the layer cannot do without them, for the message of a refusal; else "".
  void UsesAllReduce(const char* why = "") {
    signature_.uses_all_reduce = true;
    signature_.why_all_reduce = why;
  }
  // A pass, or OnSnapshot, writes files if LayerEnv::output_files allows it.
  void WritesFiles() { signature_.writes_files = true; }

  // Returns all declarations.
  NodeSignature TakeSignature() { return std::move(signature_); }

 private:
  NodeSignature::Input& InputOf(int i) { return signature_.in[static_cast<size_t>(i)]; }
  NodeSignature::Output& OutputOf(int i) { return signature_.out[static_cast<size_t>(i)]; }

  const LayerSpec& spec_;
  bool training_, is_frozen_;
  std::span<const Shape* const> shapes_;
  std::span<const DType> types_;
  NodeSignature signature_;
};

// The argument of Prepare, in which a layer makes its device plans. Prepare follows the last Setup,
// so that shapes, types and fusion are final.
class PrepareContext {
 public:
  // `declared` is the memory that Setup requested.
  PrepareContext(const Device& device, bool training, const MemoryNeeds& declared)
      : device_(device), training_(training), needs_(declared) {}

  const Device& device() const { return device_; }
  bool training() const { return training_; }
  // Requests scratch memory for the plans; the largest request counts, including Setup's.
  void Scratch(size_t bytes);
  // Requests workspace for the plans, in addition to Setup's.
  void Workspace(size_t bytes) { needs_.workspace += bytes; }
  // Memory of this layer's own for the whole run, for data that is copied to the device before the
  // pass that uses it. Snapshots do not store it.
  void UploadMemory(size_t bytes) { needs_.upload += bytes; }

  // The memory of Setup and Prepare together.
  const MemoryNeeds& needs() const { return needs_; }

 private:
  const Device& device_;
  bool training_;
  MemoryNeeds needs_;
};

}  // namespace trainer

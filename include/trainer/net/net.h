#pragma once
// A compiled net that can run: layers in order, every value at an address fixed before the first
// pass.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trainer/base/ranks/communicator.h"
#include "trainer/config/net_spec.h"
#include "trainer/layers/chain_options.h"
#include "trainer/layers/file_writer.h"
#include "trainer/layers/layer.h"
#include "trainer/net/graph.h"
#include "trainer/net/param_store.h"

namespace trainer {

struct CompileEnv;
class StateBackup;
class CapturedEvent;
class CapturedGraph;
class Bindings;
class DynamicShapes;

enum class BufferReuse {
  kShared,    // values share memory if their lifetimes allow it
  kSeparate,  // every value has its own buffer and nothing is in place; finds wrong lifetimes
  kPoisoned,  // as kShared, but a buffer is filled with NaN after its last use
};

// The boundary of a net that is one stage of a pipeline: the tensors that it receives from earlier
// stages and sends to later ones. See Net::EdgeIn.
struct StageBoundary {
  struct BoundaryTensor {
    std::string blob;
    DType dtype = DType::kF32;
    bool has_gradient = false;  // sent in the opposite direction
  };
  std::vector<BoundaryTensor> in;  // the tops of Input layers
  // Blobs as their last layer here writes them, without the outputs of the net.
  std::vector<BoundaryTensor> out;
};

struct NetOptions {
  caffe::NetState state;
  bool training = false;  // allocate what backward needs
  bool force_backward = false;
  uint64_t seed = 0;
  Rank rank = {};  // selects the shard of the data and the random streams
  // This net computes ranks [rank.rank, rank.rank + virtual_ranks) one after the other: see
  // Net::ActivateVirtualRank.
  int virtual_ranks = 1;
  bool allow_reevaluation = false;  // Forward accepts NetBatch::kSame; costs memory
  bool capture = false;     // capture passes as a CUDA graph if the device and the net allow it
  ChainOptions chain = {};  // for layers that learn from samples of their own model
  BufferReuse memory = BufferReuse::kShared;
  bool recompute = false;  // recompute activations even if the net does not set `recompute`
  // The limit of activations and scratch together, in bytes; 0: no limit. If they need more, the
  // compiler chooses outputs that backward recomputes; results do not change.
  size_t activation_budget_bytes = 0;
  bool fuse = true;  // fuse layers into the layer before them; never with kSeparate
  bool log = true;   // write Caffe's start-up lines
  // The number of floats that the run needs per weight in addition to the weight and its gradient:
  // state of the update rule and averages. Only used to refuse a net that is too large before
  // allocating.
  int states_per_weight = 0;
  OutputFiles output_files = OutputFiles::kDisabled;  // whether layers may write files
  // The folder into which layers write files at snapshots; "" for a run without snapshots.
  std::string snapshot_folder = {};
  // Only compiles: allocates no memory. The net cannot run, and its values have shapes only.
  bool plan_only = false;
  // Skips the check that the net fits the device, for a net whose parts run elsewhere.
  bool any_size = false;
  // The number of batches that may have run forward but not backward. Each slot has its own values
  // and scratch memory: see Net::SetActivationSlot.
  int activation_slots = 1;
  StageBoundary boundary = {};
};

// A value that no layer reads, which a run reports. `loss_weight` is 0 if it is not a loss.
struct NetOutput {
  std::string name;
  Tensor value;
  float loss_weight = 0;
};

// The input of a forward pass.
enum class NetBatch {
  kNext,  // the data layers' next batch
  // The batch of the last pass with the same random numbers and layer states, so that the loss is
  // the same function of the weights. Data layers do not run, and the pass index does not change.
  // Requires allow_reevaluation.
  kSame,
};

// Parameters whose gradients become final together and are contiguous in memory.
struct GradientSlice {
  std::span<float> values;         // on the device, with the padding after each parameter
  std::span<Param* const> params;  // in memory order
  // The node after whose backward the slice is final; NumLayers() if no layer adds to it, so that
  // it is final at once.
  int final_node = 0;
};

// Used by one thread. Forward and Backward allocate no memory.
class Net {
 public:
  // Compiles the net of `spec` for `options.state`: filters layers, inserts splits, sets up and
  // plans every layer, then allocates and fills the parameters that `params` does not have yet.
  // `spec`, `device` and `params` must outlive the net. Throws kConfig naming the line, or an
  // ErrorGroup if several independent layers are wrong.
  Net(const NetSpec& spec, const NetOptions& options, const Device& device, ParamStore& params);
  ~Net();

  const std::string& name() const { return name_; }

  // Runs one forward pass and returns the loss: the sum of loss_weight times each weighted output.
  float Forward(NetBatch batch = NetBatch::kNext);
  // Starts a forward pass without waiting for the loss if the device is asynchronous. TakeLoss
  // waits for the oldest pass in flight and throws what Forward would have thrown. At most
  // kMaxInFlight passes may be in flight.
  static constexpr int kMaxInFlight = 2;
  void StartForward(NetBatch batch = NetBatch::kNext);
  float TakeLoss();
  int in_flight() const;
  // Runs StartForward on the next batch, Backward with `sink`, then `then`, which must enqueue the
  // same work each time. At most one of `sink` and `then` may be given. On a net that captures
  // passes, everything after the last layer that WorksOnHost is captured in the second such pass
  // and launched as one CUDA graph from then on; passes with `sink`, with `then` and with neither
  // are captured separately. Capturing needs a `sink` that SumsCapturedPasses. Results have the
  // same bits.
  void StartPass(GradientSink* sink = nullptr, const std::function<void()>* then = nullptr);
  // Captures no pass from now on. `why` is logged if passes would be captured: "layer 'bn' ...".
  void DisableCapture(const std::string& why);
  // Whether a pass may be started before the loss of the previous one is taken: true for an
  // asynchronous device, fixed shapes and one virtual rank.
  bool RunsAhead() const { return runs_ahead_; }
  // The next pass is the pass of rank `rank.rank + part`: it uses the records, the random numbers
  // and the layer states of that rank. A pass of virtual rank 0 begins the batch of an iteration
  // and counts in passes(); virtual ranks 1, 2, ..., virtual_ranks() - 1 must follow. The caller
  // saves and restores running statistics (ParamStore::RunningStats).
  void ActivateVirtualRank(int part);
  int virtual_ranks() const { return options_.virtual_ranks; }

  // From now on, passes run and values are read in the memory of slot `slot`. A backward pass
  // belongs to the last forward pass of its slot. Requires layers without state.
  void SetActivationSlot(int slot);
  int activation_slots() const { return options_.activation_slots; }
  // Boundary tensor `i` of NetOptions::boundary in the present slot: the input that must be set
  // before a forward pass, or the output that it writes. The gradients are null if there are none;
  // backward writes EdgeInGradient and needs EdgeOutGradient before.
  const Tensor& EdgeIn(size_t i) const;
  Tensor EdgeInGradient(size_t i) const;
  const Tensor& EdgeOut(size_t i) const;
  Tensor EdgeOutGradient(size_t i) const;

  // Adds to the parameter gradients. Requires a forward pass before. `sink`, if not null, is told
  // of each slice as soon as it is final; with debug_info, only after its last line, because the
  // lines show this net's own gradients.
  void Backward(GradientSink* sink = nullptr);
  // From the next Backward on, the gradient of the loss, and so every gradient, is multiplied by
  // *factor, one float on the device. Null: gradients are not scaled.
  void ScaleLoss(const float* factor) { loss_scale_ = factor; }
  // Contiguous ranges of gradients in the order in which backward finishes them. Each parameter
  // with a gradient is in exactly one slice.
  const std::vector<GradientSlice>& gradient_slices() const { return slices_; }

  // Whether Forward and Backward log the mean absolute value of every output, parameter and
  // gradient. The net's debug_info is the initial value.
  void SetDebugInfo(bool on) { debug_ = on; }

  // Access to single layers, for measuring.
  int NumLayers() const;
  const LayerSpec& LayerAt(int i) const;
  Layer& GetLayer(int i) const;
  bool RunsBackward(int i) const;
  // Returns the layer that layer i is fused into and that computes it, or -1.
  int FusedInto(int i) const;
  void ForwardLayer(int i);
  void BackwardLayer(int i);
  // Starts a new pass: the following ForwardLayer calls draw new random numbers.
  void BeginPass();
  // Returns the weighted sum of the losses after ForwardLayer calls. Throws kData if a layer
  // reported an error in its inputs.
  float Loss();

  // The values that no layer reads, sorted by name, as Caffe numbers them.
  const std::vector<NetOutput>& outputs() const;
  // Every parameter of this net, once, in layer order, which is the order of a solver's state.
  const std::vector<Param*>& params() const { return learnable_; }

  // Returns the last value of a blob, in device memory; its data is null if the blob does not exist
  // or has no memory. After a pass only outputs, values that persist and, with kSeparate, all
  // values are still valid.
  Tensor Value(const std::string& blob) const;
  Tensor Gradient(const std::string& blob) const;
  // Input `bottom` of layer `i`, and output `top` as layer `i` itself wrote it, even if a later
  // layer writes a blob of the same name.
  const ConstTensor& Input(int i, int bottom) const;
  const Tensor& Output(int i, int top) const;

  // Copy a value to the host as f32 in row-major (N, C, H, W) order, and back.
  void ReadNchw(const ConstTensor& value, std::span<float> host) const;
  void WriteNchw(std::span<const float> host, const Tensor& value) const;

  // The number of passes done. SetPasses is called when a run is resumed.
  uint32_t passes() const { return passes_; }
  void SetPasses(uint32_t passes) { passes_ = passes; }

  // The internals for functions of weights.h, layer_state.h and cost.h. A net with plan_only has no
  // bindings.
  const Graph& graph() const { return *graph_; }
  const Bindings& bindings() const { return *bindings_; }
  ParamStore& store() const { return params_; }
  const Device& device() const { return device_; }
  bool training() const { return options_.training; }

 private:
  Tensor Find(const std::string& blob, bool gradient) const;
  void CheckInputError(int i, uint64_t word, uint32_t batches_ago) const;
  void MakeSlices();
  void KeepPartStates();
  void MakeSlots(const CompileEnv& env);
  void ComputeAgain();
  void RequireNoneStarted() const;
  void SplitHostNodes();
  bool Captures() const;
  std::unique_ptr<CapturedGraph> Capture(GradientSink* sink, const std::function<void()>* then);
  void RunIdentical(GradientSink* sink, const std::function<void()>* then, CapturedEvent* losses);
  void SendLosses();
  // With several virtual ranks, only rank 0 is logged.
  bool LogsDebugInfo() const { return debug_ && part_ == 0; }

  std::string name_;
  NetOptions options_;
  const Device& device_;
  ParamStore& params_;
  // slot_bindings_ and states_ are empty with plan_only. The order matters: layers may write ahead
  // into memory of the bindings, so the graph with the layers must be destroyed before the
  // bindings.
  std::vector<std::unique_ptr<const Bindings>> slot_bindings_;  // by activation slot
  std::unique_ptr<const Graph> graph_;
  std::vector<std::unique_ptr<DynamicShapes>> states_;
  const Bindings* bindings_ = nullptr;  // of the present slot
  DynamicShapes* state_ = nullptr;
  std::vector<Param*> learnable_;
  std::vector<Param*> slice_params_;  // parameters with a gradient, in the order of slices_
  std::vector<GradientSlice> slices_;
  std::unique_ptr<StateBackup> state_backup_;  // null without allow_reevaluation
  std::vector<std::unique_ptr<StateBackup>> virtual_rank_states_;  // empty with one virtual rank
  int part_ = 0;
  uint32_t passes_ = 0;
  bool debug_ = false;
  bool runs_ahead_ = false;
  const float* loss_scale_ = nullptr;
  // For a net that captures: the first captured node, and the captures of a pass without sink and
  // `then`, with a sink, and with `then`. Each is null before it is captured.
  struct CapturedPass {
    bool warmed_up = false;  // one such pass has run without capture
    std::unique_ptr<CapturedGraph> recording;
  };
  int first_captured_ = 0;
  bool captures_ = false;
  CapturedPass captured_pass_, captured_with_sums_, captured_with_update_;
};

// Returns the number of the random stream for `name` in `phase`.
uint32_t RngStreamOf(const std::string& name, caffe::Phase phase);

}  // namespace trainer

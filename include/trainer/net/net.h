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
#include "trainer/layers/layer.h"
#include "trainer/net/graph.h"
#include "trainer/net/param_store.h"

namespace trainer {

class Bindings;
class CaptureCache;
class DynamicShapes;
class Net;
class StateBackup;

// A value that no layer reads: what a run reports. `loss_weight` is 0 for a plain output.
struct NetOutput {
  std::string name;
  Tensor value;
  float loss_weight = 0;
};

// Everything in which one call of Net::Run may differ from another.
struct Pass {
  enum class Mode : uint8_t { kBoth, kForward, kBackward } mode = Mode::kBoth;
  // The input of a forward pass.
  enum class Batch : uint8_t {
    kNext,  // the data layers' next batch
    // The batch of the last pass with the same random numbers and layer states, so that the loss is
    // the same function of the weights. Data layers do not run, and the pass index does not change.
    // Requires allow_reevaluation.
    kSame,
  } batch = Batch::kNext;
  // The pass is the pass of rank `rank.rank + virtual_rank`: it uses the records, the random
  // numbers and the layer states of that rank. A pass of virtual rank 0 begins the batch of an
  // iteration and counts in passes(); virtual ranks 1, 2, ... must follow. The caller saves and
  // restores running statistics (ParamStore::RunningStats).
  int virtual_rank = 0;
  // The memory of values in which the pass runs. A backward pass belongs to the last forward pass
  // of its slot. Several slots require layers without state.
  int activation_slot = 0;
  // Called for each slice of gradients as soon as it is final. A pass with a sink is captured only
  // if the sink SumsCapturedPasses.
  GradientSink* gradients = nullptr;
  // Called after the backward pass. It must enqueue the same kernels each time, because the pass is
  // captured. Not together with `gradients`.
  const std::function<void()>* fused_update = nullptr;
};

enum class Direction : uint8_t { kForward, kBackward };

// Called in place of each node of a pass, in the order of the pass. `run` runs the node, or the
// next hook of the net; a hook that leaves the pass as it is calls `run` once. Passes of a net that
// has a hook are not captured, and a gradient sink is called after the last node, so that a hook
// sees the gradients of this rank alone.
using NodeHook = std::function<void(const Net& net, NodeId node, Direction direction,
                                    const std::function<void()>& run)>;

// Parameters whose gradients become final together and are contiguous in memory.
struct GradientSlice {
  std::span<float> values;         // on the device, with the padding after each parameter
  std::span<Param* const> params;  // in memory order
  // The gradients are final when this node has run backward. The number of nodes if no layer adds
  // to them: they are final at once.
  int final_node = 0;
};

// Used by one thread. Forward and Backward allocate no memory.
class Net {
 public:
  // Allocates the memory that `graph` planned, and allocates and fills its new parameters. `graph`
  // was compiled for this device and this store; both must outlive the net. Throws what
  // RequireDeviceMemory throws, and kConfig for a filler that makes no sense.
  Net(std::unique_ptr<const Graph> graph, const Device& device, ParamStore& params);
  // Compiles `spec` (see compile.h) and makes a net of the graph.
  Net(const NetSpec& spec, const NetOptions& options, const Device& device, ParamStore& params);
  ~Net();

  // Runs one pass or half of one, without waiting for the loss on an asynchronous device. A net
  // with capture on replays everything after the last layer that runs on the host with one call,
  // from the second whole pass of each kind on. The kinds are: with `gradients`, with
  // `fused_update`, with neither. The numbers are the same bit for bit.
  void Run(const Pass& pass = {});
  // Waits for the loss of the oldest forward pass in flight and returns it. Throws the error of
  // that pass, if a layer found one in its input. At most kMaxInFlight passes may be in flight.
  static constexpr int kMaxInFlight = 2;
  float TakeLoss();
  int in_flight() const;
  // Runs a forward pass and returns the loss: the sum of loss_weight times each weighted output.
  float Forward(Pass::Batch batch = Pass::Batch::kNext);
  // Adds to the parameter gradients. Requires a Forward before it.
  void Backward() { Run({.mode = Pass::Mode::kBackward}); }
  // Stops capturing passes. `why` ("layer 'bn' ...") is logged if the net would have captured.
  void DisableCapture(const std::string& why);
  // Returns whether a pass may be started before the loss of the previous one is taken: true for
  // an asynchronous device, fixed shapes and one virtual rank.
  bool RunsAhead() const { return runs_ahead_; }
  // Multiplies the loss's gradient, and so all gradients, by *factor from the next Backward on.
  // `factor` is one float on the device; null multiplies by nothing.
  void ScaleLoss(const float* factor) { loss_scale_ = factor; }
  // Contiguous ranges of gradients in the order in which backward finishes them. Each parameter
  // with a gradient is in exactly one slice.
  const std::vector<GradientSlice>& gradient_slices() const { return slices_; }

  // From the next pass on, `hook` is called around each node, inside the hooks that were added
  // before it; adding it again has no effect. It must outlive the net or be removed. A net with
  // debug_info has DebugInfoHook from the start.
  void AddHook(const NodeHook* hook);
  // Returns whether the net had the hook.
  bool RemoveHook(const NodeHook* hook);

  // The values that no layer reads, sorted by name, as Caffe numbers them.
  const std::vector<NetOutput>& outputs() const;
  // Every parameter this net uses, once, in layer order: the order of a solver's state.
  const std::vector<Param*>& params() const { return graph_->params; }

  // Return a value and its gradient, both in device memory. They are read from an activation slot,
  // by default the slot of the last pass, and have the shape of that slot's last pass. A gradient
  // that is not computed has null data. After a pass, only outputs and persistent values keep their
  // numbers; with kSeparate, all values do.
  static constexpr int kLastSlot = -1;
  Tensor Value(ValueId id, int activation_slot = kLastSlot) const;
  Tensor Gradient(ValueId id, int activation_slot = kLastSlot) const;
  // Find the value by blob name, as its last writer leaves it. Empty if no layer writes `blob`.
  Tensor Value(const std::string& blob) const;
  Tensor Gradient(const std::string& blob) const;

  // Copy a value to the host as f32 in row-major (N, C, H, W) order, and back.
  void ReadNchw(const ConstTensor& value, std::span<float> host) const;
  void WriteNchw(std::span<const float> host, const Tensor& value) const;

  // Returns the device memory in which the layer of `node` keeps the state of a virtual rank
  // between passes. Empty for a layer without state.
  std::span<std::byte> StateOf(NodeId node, int virtual_rank = 0) const;

  // Returns the arguments of a node's calls, in the slot of the last pass.
  const RunContext& context(NodeId node, Direction direction) const;

  // The number of passes done. SetPasses is called when a run is resumed.
  uint32_t passes() const { return passes_; }
  void SetPasses(uint32_t passes) { passes_ = passes; }

  const Graph& graph() const { return *graph_; }
  ParamStore& store() const { return params_; }
  const Device& device() const { return device_; }

 private:
  friend class CaptureCache;
  friend std::string DescribeBrokenPass(Net& net);
  Tensor At(ValueId id, BufferId buffer, int activation_slot) const;
  void ThrowInputError(NodeId id, uint64_t word, uint32_t batches_ago) const;
  void MakeSlices();
  void MakeSlots();
  void SelectSlot(int slot);
  void KeepVirtualRankStates();
  void SelectVirtualRank(int virtual_rank);
  void RepeatBatch();
  void RunForward(Pass::Batch batch);
  void RunBackward(GradientSink* sink);
  void RunNode(NodeId id, Direction direction, size_t hook = 0);

  const NetOptions& options_;  // of graph_
  const Device& device_;
  ParamStore& params_;
  struct Slot {
    std::unique_ptr<Bindings> bindings;
    std::unique_ptr<DynamicShapes> dynamic_shapes;  // null without a node that has_dynamic_shape
  };
  // One entry per activation slot. Layers may write ahead into memory of the bindings, so the graph
  // with the layers must be destroyed before the bindings.
  std::vector<Slot> slots_;
  std::unique_ptr<const Graph> graph_;
  int slot_ = 0;                        // the slot of the last pass
  const Bindings* bindings_ = nullptr;  // of slot_
  DynamicShapes* dynamic_shapes_ = nullptr;
  std::vector<Param*> slice_params_;  // parameters with a gradient, in the order of slices_
  std::vector<GradientSlice> slices_;
  std::unique_ptr<StateBackup> state_backup_;  // null without allow_reevaluation
  std::vector<std::unique_ptr<StateBackup>> virtual_rank_states_;  // empty with one virtual rank
  int virtual_rank_ = 0;  // whose states are in the memory of the layers
  uint32_t passes_ = 0;
  std::vector<const NodeHook*> hooks_;  // the outermost first
  bool runs_ahead_ = false;
  const float* loss_scale_ = nullptr;
  std::unique_ptr<CaptureCache> captures_;  // null for a net that does not capture
};

// Returns the number of the random stream for `name` in `phase`.
uint32_t RngStreamOf(const std::string& name, caffe::Phase phase);

}  // namespace trainer

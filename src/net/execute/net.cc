#include "trainer/net/net.h"

#include <algorithm>
#include <functional>

#include "compile/build.h"
#include "compile/compile_log.h"
#include "execute/capture_cache.h"
#include "execute/dynamic_shapes.h"
#include "execute/scaled_loss.h"
#include "execute/state_backup.h"
#include "io/nchw_values.h"
#include "trainer/base/error/error_collector.h"
#include "trainer/base/text/text.h"
#include "trainer/layers/data_layer.h"
#include "trainer/layers/filler.h"
#include "trainer/layers/record_error.h"
#include "trainer/net/compile.h"
#include "trainer/net/debug_info.h"

namespace trainer {

namespace {

// Adds the name of the record to an error, if a layer that reads records produced the item. Skips
// Split layers and casts on the way to that layer.
Error WithItemsName(const Graph& graph, const Node& reader, const RecordError& error,
                    uint32_t batches_ago) {
  ValueId value = reader.in[static_cast<size_t>(error.input())];
  const Node* producer = &graph.nodes[graph.values[value].producer];
  while (producer->is_cast || producer->spec.type() == "Split") {
    value = producer->in[0];
    producer = &graph.nodes[graph.values[value].producer];
  }
  DataLayer* const source = producer->layer->data_layer();
  const std::string name = source == nullptr ? "" : source->RecordName(error.item(), batches_ago);
  if (name.empty()) return error;
  return Error(error.code(), Join(error.what(), "; item ", error.item(), " is ", name));
}

void FillParams(const Graph& graph, uint64_t seed, const ParamStore& store) {
  std::vector<float> host;
  ErrorCollector errors;
  for (const Param* param : graph.new_params) {
    host.assign(static_cast<size_t>(param->count()), 0.0f);
    const Node& owner = graph.nodes[NodeId(param->owner_node)];
    const PhiloxKey key{seed, RngStreamOf(Join(param->layer, ":", param->index), caffe::TRAIN)};
    const std::span<const float> initial =
        owner.signature.params[static_cast<size_t>(param->index)].options.initial;
    std::ranges::copy(initial, host.begin());
    if (initial.empty()) {
      errors.Try([&] { Fill(param->filler, param->shape, key, 0, owner.spec, host); });
    }
    store.Import(*param, host, param->weight);
  }
  errors.Throw();
}

}  // namespace

uint32_t RngStreamOf(const std::string& name, caffe::Phase phase) {
  uint32_t hash = 2166136261u;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return (hash ^ static_cast<uint32_t>(phase)) * 16777619u;
}

Net::Net(const NetSpec& spec, const NetOptions& options, const Device& device, ParamStore& params)
    : Net(Compile(spec, options, device, params, SizeLimit::kNone), device, params) {}

Net::Net(std::unique_ptr<const Graph> graph, const Device& device, ParamStore& params)
    : options_(graph->options), device_(device), params_(params), graph_(std::move(graph)) {
  RequireDeviceMemory(*graph_, device_, params_, FindAvailableMemory(device_));
  params_.Allocate(options_.training);
  FillParams(*graph_, options_.seed, params_);
  MakeSlices();
  MakeSlots();
  runs_ahead_ = device_.IsAsync() && options_.virtual_ranks == 1 &&
                options_.activation_slots == 1 && dynamic_shapes_ == nullptr;
  if (options_.capture && runs_ahead_ && !options_.allow_reevaluation &&
      device_.capture() != nullptr) {
    captures_ = std::make_unique<CaptureCache>(*this);
  }
  KeepVirtualRankStates();
  if (options_.allow_reevaluation)
    state_backup_ = std::make_unique<StateBackup>(*graph_, *bindings_, device_);
  if (graph_->debug_info) AddHook(DebugInfoHook());
  const CompileLog log(options_.log);
  log.BackwardLayers(*graph_);
  log.End(*this, options_.state);
}

Net::~Net() = default;

void Net::MakeSlices() {
  if (!options_.training) return;
  struct Finished {
    int layer;
    Param* param;
  };
  std::vector<Finished> order;
  for (Param* param : graph_->params) {
    if (param->grad != nullptr) order.push_back({FinalGradNode(param, *graph_), param});
  }
  std::ranges::sort(order, [](const Finished& a, const Finished& b) {
    return a.layer != b.layer ? a.layer > b.layer
                              : std::less<const float*>()(a.param->grad, b.param->grad);
  });
  for (const Finished& entry : order) slice_params_.push_back(entry.param);
  for (size_t i = 0; i < order.size(); ++i) {
    Param* const* const param = &slice_params_[i];
    const auto floats = static_cast<size_t>(ParamStore::PaddedCount((*param)->count()));
    GradientSlice* const last = slices_.empty() ? nullptr : &slices_.back();
    if (last != nullptr && last->final_node == order[i].layer &&
        last->values.data() + last->values.size() == (*param)->grad) {
      last->values = {last->values.data(), last->values.size() + floats};
      last->params = {last->params.data(), last->params.size() + 1};
    } else {
      slices_.push_back({{(*param)->grad, floats}, {param, 1}, order[i].layer});
    }
  }
}

void Net::MakeSlots() {
  const CompileEnv env{options_, device_, params_};
  const bool shapes_change = std::ranges::any_of(graph_->nodes, &Node::has_dynamic_shape);
  for (int slot = 0; slot < options_.activation_slots; ++slot) {
    auto bindings = std::make_unique<Bindings>(*graph_, options_, device_);
    auto shapes =
        shapes_change ? std::make_unique<DynamicShapes>(*graph_, *bindings, env) : nullptr;
    slots_.push_back({std::move(bindings), std::move(shapes)});
  }
  SelectSlot(0);
}

// Allocates a copy of all states for each virtual rank; the buffers hold the active rank's state.
void Net::KeepVirtualRankStates() {
  for (int rank = 0; rank < options_.virtual_ranks && options_.virtual_ranks > 1; ++rank) {
    virtual_rank_states_.push_back(std::make_unique<StateBackup>(*graph_, *bindings_, device_));
    virtual_rank_states_.back()->Save();
  }
}

void Net::DisableCapture(const std::string& why) {
  if (captures_ != nullptr) captures_->Disable(why);
}

float Net::Forward(Pass::Batch batch) {
  if (in_flight() > 0) throw Error(ErrorCode::kInternal, "a loss before this one is not taken");
  Run({.mode = Pass::Mode::kForward, .batch = batch});
  return TakeLoss();
}

void Net::Run(const Pass& pass) {
  if (pass.activation_slot != slot_) SelectSlot(pass.activation_slot);
  if (pass.virtual_rank != virtual_rank_) SelectVirtualRank(pass.virtual_rank);
  if (captures_ != nullptr && hooks_.empty() && captures_->Run(pass)) return;
  if (pass.mode != Pass::Mode::kBackward) RunForward(pass.batch);
  if (pass.mode != Pass::Mode::kForward) RunBackward(pass.gradients);
  if (pass.fused_update != nullptr) (*pass.fused_update)();
}

void Net::SelectSlot(int slot) {
  const Slot& selected = slots_.at(static_cast<size_t>(slot));
  slot_ = slot;
  bindings_ = selected.bindings.get();
  dynamic_shapes_ = selected.dynamic_shapes.get();
}

void Net::SelectVirtualRank(int virtual_rank) {
  if (virtual_rank < 0 || virtual_rank >= options_.virtual_ranks) {
    throw Error(ErrorCode::kInternal, "a virtual rank that this net does not compute");
  }
  virtual_rank_states_[static_cast<size_t>(virtual_rank_)]->Save();
  virtual_rank_ = virtual_rank;
  virtual_rank_states_[static_cast<size_t>(virtual_rank_)]->Restore();
  bindings_->results().SetRank(options_.rank.rank + virtual_rank, virtual_rank);
}

void Net::RunForward(Pass::Batch batch) {
  PassResults& results = bindings_->results();
  const bool again = batch == Pass::Batch::kSame;
  if (again) {
    RepeatBatch();
  } else {
    results.Begin(virtual_rank_ == 0 ? passes_++ : passes_ - 1);
    if (state_backup_ != nullptr) state_backup_->Save();
  }
  for (const NodeId id : graph_->nodes.Ids()) {
    if (!again || !graph_->nodes[id].batch_only) RunNode(id, Direction::kForward);
  }
  results.QueueLosses(bindings_->losses());
  results.Publish(false);
  results.StartReadback(false);
}

void Net::RunBackward(GradientSink* sink) {
  if (loss_scale_ != nullptr) ScaleSeedGradients(*graph_, *bindings_, device_, loss_scale_);
  size_t next = 0;
  for (int s = graph_->nodes.size(); s >= 0; --s) {
    if (s < graph_->nodes.size()) RunNode(NodeId(s), Direction::kBackward);
    // With hooks, the sink waits for the last node: see NodeHook.
    if (sink == nullptr || (s > 0 && !hooks_.empty())) continue;
    for (; next < slices_.size() && slices_[next].final_node >= s; ++next) {
      sink->OnGradientReady(static_cast<int>(next), slices_[next].values);
    }
  }
}

void Net::RepeatBatch() {
  if (state_backup_ == nullptr) {
    throw Error(ErrorCode::kInternal, "a second pass on one batch, by a net that keeps no batch");
  }
  state_backup_->Restore();
  bindings_->results().Repeat();
}

void Net::AddHook(const NodeHook* hook) {
  if (std::ranges::find(hooks_, hook) == hooks_.end()) hooks_.push_back(hook);
}

bool Net::RemoveHook(const NodeHook* hook) { return std::erase(hooks_, hook) > 0; }

// Runs the node inside the hooks from number `hook` on.
void Net::RunNode(NodeId id, Direction direction, size_t hook) {
  if (hook < hooks_.size()) {
    return (*hooks_[hook])(*this, id, direction, [=, this] { RunNode(id, direction, hook + 1); });
  }
  const Node& node = graph_->nodes[id];
  const bool forward = direction == Direction::kForward, dynamic = node.has_dynamic_shape;
  if (forward && !node.fused_into && (!dynamic || dynamic_shapes_->BeforeForward(id))) {
    node.layer->Forward(bindings_->Of(id).forward);
    // On an asynchronous device TakeLoss checks for errors, because reading one here would wait for
    // the node.
    const uint64_t word =
        device_.IsAsync() ? InputErrorFlag::kNone : bindings_->results().TakeInputError(id);
    if (word != InputErrorFlag::kNone) ThrowInputError(id, word, 0);
    if (dynamic) dynamic_shapes_->TakeShapes(id);
  }
  if (!forward && node.has_backward) {
    for (const ValueId value : node.recompute) {
      graph_->nodes[graph_->values[value].producer].layer->Recompute(bindings_->Recompute(value));
    }
    if (!dynamic || dynamic_shapes_->BeforeBackward(id)) {
      node.layer->Backward(bindings_->Of(id).backward);
    }
  }
  if (options_.memory == BufferReuse::kPoisoned) {
    bindings_->Poison(forward ? graph_->ForwardTime(id) : graph_->BackwardTime(id));
  }
}

// Throws the error that a kernel of the node reported in `word`, in the pass `batches_ago` passes
// before the last one.
void Net::ThrowInputError(NodeId id, uint64_t word, uint32_t batches_ago) const {
  const Node& node = graph_->nodes[id];
  try {
    node.layer->ThrowInputError(bindings_->Of(id).forward, InputErrorFlag::IndexOf(word),
                                InputErrorFlag::NumberOf(word));
  } catch (const RecordError& error) {
    throw WithItemsName(*graph_, node, error, batches_ago);
  }
}

int Net::in_flight() const { return bindings_->results().NumSent(); }

float Net::TakeLoss() {
  const PassResults::Result results = bindings_->results().WaitReadback();
  for (size_t i = 0; i < results.faults.size(); ++i) {
    const uint64_t word = results.faults[i];
    if (word != InputErrorFlag::kNone) ThrowInputError(NodeId(i), word, passes_ - 1 - results.pass);
  }
  const float* number = results.losses.data();
  float loss = 0;
  for (const NetOutput& output : bindings_->losses()) {
    float value = 0;
    for (int64_t i = 0; i < output.value.Count(); ++i) value += *number++;
    loss += output.loss_weight * value;
  }
  return loss;
}

const std::vector<NetOutput>& Net::outputs() const { return bindings_->outputs(); }

const RunContext& Net::context(NodeId node, Direction direction) const {
  const Bindings::NodeContexts& contexts = bindings_->Of(node);
  return direction == Direction::kForward ? contexts.forward : contexts.backward;
}

std::span<std::byte> Net::StateOf(NodeId node, int virtual_rank) const {
  if (virtual_rank == virtual_rank_) return bindings_->Of(node).forward.State();
  return virtual_rank_states_.at(static_cast<size_t>(virtual_rank))->Of(node);
}

Tensor Net::At(ValueId id, BufferId buffer, int activation_slot) const {
  const auto& value = graph_->values[id];
  const Bindings* bindings = bindings_;
  const DynamicShapes* shapes = dynamic_shapes_;
  if (activation_slot != kLastSlot) {
    const Slot& slot = slots_.at(static_cast<size_t>(activation_slot));
    bindings = slot.bindings.get();
    shapes = slot.dynamic_shapes.get();
  }
  return {bindings->At(buffer), value.is_dynamic ? shapes->ShapeOf(id) : value.shape, value.dtype};
}

Tensor Net::Value(ValueId id, int activation_slot) const {
  return At(id, graph_->values[id].buffer, activation_slot);
}

Tensor Net::Gradient(ValueId id, int activation_slot) const {
  return At(id, graph_->values[id].grad_buffer, activation_slot);
}

Tensor Net::Value(const std::string& blob) const {
  const auto found = graph_->latest_by_name.find(blob);
  return found == graph_->latest_by_name.end() ? Tensor{} : Value(found->second);
}

Tensor Net::Gradient(const std::string& blob) const {
  const auto found = graph_->latest_by_name.find(blob);
  return found == graph_->latest_by_name.end() ? Tensor{} : Gradient(found->second);
}

void Net::ReadNchw(const ConstTensor& value, std::span<float> host) const {
  trainer::ReadNchw(device_, value, host);
}

void Net::WriteNchw(std::span<const float> host, const Tensor& value) const {
  trainer::WriteNchw(device_, host, value);
}

}  // namespace trainer

#include "trainer/net/net.h"

#include <algorithm>
#include <cstring>

#include "graph.h"
#include "net_log.h"
#include "trainer/base/error_group.h"
#include "trainer/base/text.h"
#include "trainer/config/net_layers.h"
#include "trainer/layers/filler.h"
#include "trainer/layers/items.h"

namespace trainer {

namespace {

// Adds which record the item was, where a layer that reads records brought it, past Split layers
// and casts.
Error WithItemsName(const Graph& graph, const StepInfo& reader, const ItemError& error) {
  int value = reader.in[static_cast<size_t>(error.input())];
  const StepInfo* writer = &graph.steps[static_cast<size_t>(graph.values[value].writer)];
  while (writer->is_cast || writer->spec.type() == "Split") {
    value = writer->in[0];
    writer = &graph.steps[static_cast<size_t>(graph.values[value].writer)];
  }
  auto* const source = dynamic_cast<NamesItems*>(writer->layer.get());
  const std::string name = source == nullptr ? "" : source->NameOfItem(error.item());
  if (name.empty()) return error;
  return Error(error.code(), Join(error.what(), "; item ", error.item(), " is ", name));
}

// Each replica drops other elements of its own items; rank 0 those of a run alone. The seed takes
// the rank up, so that no stream of one replica is another's of another.
PhiloxKey OfReplica(PhiloxKey key, const Replica& replica) {
  key.seed ^= static_cast<uint64_t>(replica.rank) * 0x9E3779B97F4A7C15u;
  return key;
}

}  // namespace

uint32_t StreamOf(const std::string& name, caffe::Phase phase) {
  uint32_t hash = 2166136261u;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return (hash ^ static_cast<uint32_t>(phase)) * 16777619u;
}

Net::Net(const NetSpec& spec, const NetOptions& options, const Device& device, ParamStore& params)
    : name_(spec.proto.name()),
      options_(options),
      device_(device),
      params_(params),
      graph_(std::make_unique<Graph>()),
      debug_info_(spec.proto.debug_info()) {
  options_.force_backward = options.force_backward || spec.proto.force_backward();
  options_.recompute = options.recompute || spec.proto.recompute();
  const NetLog log(options_.log);
  log.Rules(spec, options_.state);
  const std::vector<LayerSpec> layers = ConnectedLayers(spec, options_.state);
  if (layers.empty()) {
    throw Error(
        ErrorCode::kConfig, {spec.file},
        Join("net '", name_, "' has no layer in phase ", caffe::Phase_Name(options_.state.phase()),
             "; check its include and exclude rules"));
  }
  log.Start(name_, layers, options_.state);
  PlanLayers(layers, ChooseStorage(spec, layers), options_, device_, params_, *graph_);
  log.Layers(*graph_);
  if (!debug_info_) FuseLayers(options_, device_, params_, *graph_);
  PlanGradients(options_, *graph_);
  OrderGradients(*graph_);
  if (options_.keeps_batch) PinBatch(*graph_);
  PlanMemory(options_, *graph_);
  RequireFit(*graph_, options_, device_, params_.PlannedBytes());
  ListParams();
  if (options_.plan_only) return;
  params_.Allocate(options_.training);
  FillParams(graph_->fresh);
  ListSlices();
  arena_ = device_.Allocate(graph_->plan.arena_bytes);
  device_.Zero(arena_, graph_->plan.arena_bytes);
  BindContexts();
  CollectOutputs();
  log.Gradients(*graph_);
  log.End(*graph_, outputs_);
}

Net::~Net() {
  if (arena_ != nullptr) device_.Free(arena_);
  if (faults_ != nullptr) device_.Free(faults_);
  if (kept_states_ != nullptr) device_.Free(kept_states_);
  for (void* spare : spares_) device_.Free(spare);
}

void Net::FillParams(const std::vector<Param*>& fresh) {
  std::vector<float> host;
  ErrorList errors;
  for (const Param* param : fresh) {
    host.assign(static_cast<size_t>(param->count()), 0.0f);
    const LayerSpec& spec = graph_->steps[static_cast<size_t>(param->owner_step)].spec;
    const PhiloxKey key{options_.seed,
                        StreamOf(Join(param->layer, ":", param->index), caffe::TRAIN)};
    Attempt(&errors, [&] { Fill(param->filler, param->shape, key, 0, spec, host); });
    params_.Import(*param, host, param->weight);
  }
  if (!errors.empty()) ThrowAll(std::move(errors));
}

void Net::ListParams() {
  for (const StepInfo& step : graph_->steps) {
    for (Param* param : step.params) {
      if (std::ranges::find(learnable_, param) == learnable_.end()) learnable_.push_back(param);
    }
  }
}

void Net::BindContexts() {
  auto at = [&](int block) -> std::byte* {
    return block < 0 ? nullptr
                     : static_cast<std::byte*>(arena_) +
                           graph_->blocks[static_cast<size_t>(block)].offset;
  };
  size_t states = 0;
  contexts_.resize(graph_->steps.size());
  fault_words_.assign(contexts_.size(), FaultWord::kNone);
  const size_t fault_bytes = fault_words_.size() * sizeof(uint64_t);
  faults_ = static_cast<uint64_t*>(device_.Allocate(fault_bytes));
  device_.CopyToDevice(faults_, fault_words_.data(), fault_bytes);
  for (size_t s = 0; s < contexts_.size(); ++s) {
    const StepInfo& step = graph_->steps[s];
    RunContext& run = contexts_[s];
    for (const int taken : step.absorbed) {
      run.absorbed_.push_back(&contexts_[static_cast<size_t>(taken)]);
    }
    run.device_ = &device_;
    run.fault_ = faults_ + s;
    run.phase_ = step.spec.proto().phase();
    run.key_ = OfReplica({options_.seed, StreamOf(step.key, run.phase_)}, options_.replica);
    for (size_t i = 0; i < step.in.size(); ++i) {
      const ValueInfo& value = graph_->values[static_cast<size_t>(step.in[i])];
      run.in_.emplace_back(at(value.block), value.shape, value.dtype);
      run.grad_in_.push_back(
          {step.wants_grad[i] ? at(value.grad_block) : nullptr, value.shape, value.dtype});
    }
    for (const int out : step.out) {
      const ValueInfo& value = graph_->values[static_cast<size_t>(out)];
      run.out_.push_back({at(value.block), value.shape, value.dtype});
      run.grad_out_.emplace_back(at(value.grad_block), value.shape, value.dtype);
    }
    for (Param* param : step.params) {
      run.param_.push_back(param->weight);
      run.grad_param_.push_back(options_.training ? param->grad : nullptr);
    }
    if (step.workspace_bytes > 0) run.workspace_ = {at(step.workspace_block), step.workspace_bytes};
    if (step.state_bytes > 0) run.state_ = {at(step.state_block), step.state_bytes};
    states += step.state_bytes;
  }
  if (options_.keeps_batch && states > 0) kept_states_ = device_.Allocate(states);
}

void Net::CollectOutputs() {
  for (const StepInfo& step : graph_->steps) {
    const RunContext& run = contexts_[static_cast<size_t>(&step - graph_->steps.data())];
    for (size_t i = 0; i < step.out.size(); ++i) {
      const ValueInfo& value = graph_->values[static_cast<size_t>(step.out[i])];
      const NetOutput output{value.name, run.out_[i], value.loss_weight};
      if (value.is_output && !value.name.starts_with('(')) outputs_.push_back(output);
      if (value.loss_weight == 0) continue;
      losses_.push_back(output);
      if (run.grad_out_[i].data == nullptr) continue;
      const std::vector<float> weights(static_cast<size_t>(value.shape.Count()), value.loss_weight);
      device_.CopyToDevice(const_cast<void*>(run.grad_out_[i].data), weights.data(),
                           weights.size() * sizeof(float));
    }
  }
  std::ranges::stable_sort(outputs_, {}, &NetOutput::name);
}

float Net::Forward(NetBatch batch) {
  if (batch == NetBatch::kSame) return ForwardAgain();
  BeginPass();
  for (int s = 0; s < NumLayers(); ++s) {
    ForwardLayer(s);
    if (debug_info_) LogForward(s);
  }
  return Loss();
}

void Net::BeginPass() {
  for (RunContext& run : contexts_) {
    run.pass_ = passes_;
    run.repeats_ = false;
  }
  ++passes_;
  if (kept_states_ != nullptr) CopyStates(false);
}

void Net::ForwardLayer(int i) {
  const StepInfo& step = graph_->steps[static_cast<size_t>(i)];
  RunContext& run = contexts_[static_cast<size_t>(i)];
  if (step.absorbed_by >= 0) return;
  if (step.follows) Follow(i);
  for (const int out : step.out) {
    const ValueInfo& value = graph_->values[static_cast<size_t>(out)];
    if (value.again_block >= 0) PointTo(out, value.block);
  }
  if (step.scratch_block >= 0) {
    run.scratch_ = {static_cast<std::byte*>(arena_) +
                        graph_->blocks[static_cast<size_t>(step.scratch_block)].offset,
                    step.scratch_bytes};
  }
  if (step.resting) {
    Rest(i);
  } else {
    step.layer->Forward(run);
    if (device_.kind() == DeviceKind::kCpu) CheckFaults(i, 1);
  }
  if (step.varies && !step.resting) TakeSizes(i);
  if (options_.memory == MemoryMode::kPoisoned) Poison(i);
}

void Net::BackwardLayer(int i) {
  const StepInfo& step = graph_->steps[static_cast<size_t>(i)];
  if (step.runs_backward) {
    RunContext& run = contexts_[static_cast<size_t>(i)];
    for (const int value : step.again) ComputeAgain(value);
    if (step.grad_scratch_block >= 0) {
      run.scratch_ = {static_cast<std::byte*>(arena_) +
                          graph_->blocks[static_cast<size_t>(step.grad_scratch_block)].offset,
                      step.scratch_bytes};
    }
    if (step.resting) {
      RestBackward(i);
    } else {
      step.layer->Backward(run);
    }
  }
  if (options_.memory == MemoryMode::kPoisoned) Poison(graph_->BackwardStep(i));
}

// Makes the writer and the readers of a value find it in another block.
void Net::PointTo(int value, int block) {
  const ValueInfo& info = graph_->values[static_cast<size_t>(value)];
  auto* const at =
      static_cast<std::byte*>(arena_) + graph_->blocks[static_cast<size_t>(block)].offset;
  contexts_[static_cast<size_t>(info.writer)].out_[0].data = at;
  for (const int reader : info.readers) {
    const StepInfo& step = graph_->steps[static_cast<size_t>(reader)];
    for (size_t k = 0; k < step.in.size(); ++k) {
      if (step.in[k] == value) contexts_[static_cast<size_t>(reader)].in_[k].data = at;
    }
  }
}

void Net::ComputeAgain(int value) {
  const ValueInfo& info = graph_->values[static_cast<size_t>(value)];
  PointTo(value, info.again_block);
  graph_->steps[static_cast<size_t>(info.writer)].layer->Recompute(
      contexts_[static_cast<size_t>(info.writer)]);
}

// Fills what nobody reads after `step` with NaN.
void Net::Poison(int step) {
  for (const Block& block : graph_->blocks) {
    if (block.last == step) {
      std::memset(static_cast<std::byte*>(arena_) + block.offset, 0xff, block.bytes);
    }
  }
}

// Looks at what the kernels of some layers reported, which other devices only know when all that is
// queued is done.
void Net::CheckFaults(int first, int count) {
  device_.CopyToHost(fault_words_.data() + first, faults_ + first,
                     static_cast<size_t>(count) * sizeof(uint64_t));
  for (int i = first; i < first + count; ++i) {
    const uint64_t word = fault_words_[static_cast<size_t>(i)];
    if (word == FaultWord::kNone) continue;
    device_.CopyToDevice(faults_ + i, &FaultWord::kNone, sizeof(uint64_t));
    const StepInfo& step = graph_->steps[static_cast<size_t>(i)];
    try {
      step.layer->ThrowFault(contexts_[static_cast<size_t>(i)], FaultWord::IndexOf(word),
                             FaultWord::NumberOf(word));
    } catch (const ItemError& error) {
      throw WithItemsName(*graph_, step, error);
    }
  }
}

float Net::Loss() {
  CheckFaults(0, NumLayers());
  float loss = 0;
  for (const NetOutput& output : losses_) {
    float value = 0;
    for (int64_t i = 0; i < output.value.Count(); ++i) {
      float element = 0;
      device_.CopyToHost(&element, output.value.f32() + i, sizeof(element));
      value += element;
    }
    loss += output.loss_weight * value;
  }
  return loss;
}

int Net::NumLayers() const { return graph_->NumSteps(); }
const LayerSpec& Net::LayerAt(int i) const { return graph_->steps[static_cast<size_t>(i)].spec; }
Layer& Net::GetLayer(int i) const { return *graph_->steps[static_cast<size_t>(i)].layer; }
bool Net::RunsBackward(int i) const { return graph_->steps[static_cast<size_t>(i)].runs_backward; }
int Net::AbsorbedBy(int i) const { return graph_->steps[static_cast<size_t>(i)].absorbed_by; }
const MemoryPlan& Net::memory_plan() const { return graph_->plan; }

Tensor Net::Value(const std::string& blob) const {
  const auto found = graph_->newest.find(blob);
  if (found == graph_->newest.end()) return {};
  const ValueInfo& value = graph_->values[static_cast<size_t>(found->second)];
  if (arena_ == nullptr || value.block < 0) return {nullptr, value.shape, value.dtype};
  return {static_cast<std::byte*>(arena_) + graph_->blocks[static_cast<size_t>(value.block)].offset,
          value.shape, value.dtype};
}

const ConstTensor& Net::Input(int i, int bottom) const {
  return contexts_[static_cast<size_t>(i)].In(bottom);
}

const Tensor& Net::Output(int i, int top) const {
  return contexts_[static_cast<size_t>(i)].Out(top);
}

Tensor Net::Gradient(const std::string& blob) const {
  const auto found = graph_->newest.find(blob);
  if (found == graph_->newest.end()) return {};
  const ValueInfo& value = graph_->values[static_cast<size_t>(found->second)];
  if (value.grad_block < 0) return {nullptr, value.shape, value.dtype};
  return {static_cast<std::byte*>(arena_) +
              graph_->blocks[static_cast<size_t>(value.grad_block)].offset,
          value.shape, value.dtype};
}

}  // namespace trainer

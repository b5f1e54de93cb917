#include "trainer/net/net.h"

#include <algorithm>

#include "activation_budget.h"
#include "debug_info.h"
#include "device_memory.h"
#include "kept_states.h"
#include "net_log.h"
#include "plain.h"
#include "run_state.h"
#include "trainer/backend/recording.h"
#include "trainer/base/error/error_collector.h"
#include "trainer/base/text/text.h"
#include "trainer/config/net_layers.h"
#include "trainer/layers/filler.h"
#include "trainer/layers/items.h"
#include "trainer/layers/param_start.h"

namespace trainer {

namespace {

// Adds which record the item was, where a layer that reads records brought it, past Split layers
// and casts.
Error WithItemsName(const Graph& graph, const StepInfo& reader, const ItemError& error,
                    uint32_t batches_ago) {
  ValueId value = reader.in[static_cast<size_t>(error.input())];
  const StepInfo* writer = &graph.steps[graph.values[value].writer];
  while (writer->is_cast || writer->spec.type() == "Split") {
    value = writer->in[0];
    writer = &graph.steps[graph.values[value].writer];
  }
  auto* const source = dynamic_cast<NamesItems*>(writer->layer.get());
  const std::string name = source == nullptr ? "" : source->NameOfItem(error.item(), batches_ago);
  if (name.empty()) return error;
  return Error(error.code(), Join(error.what(), "; item ", error.item(), " is ", name));
}

void FillParams(const Graph& graph, uint64_t seed, const ParamStore& store) {
  std::vector<float> host;
  ErrorCollector errors;
  for (const Param* param : graph.fresh) {
    host.assign(static_cast<size_t>(param->count()), 0.0f);
    const LayerSpec& spec = graph.steps[StepId(param->owner_step)].spec;
    const PhiloxKey key{seed, StreamOf(Join(param->layer, ":", param->index), caffe::TRAIN)};
    const auto* const own =
        dynamic_cast<const StartsParams*>(graph.steps[StepId(param->owner_step)].layer.get());
    if (own == nullptr || !own->Start(param->index, host)) {
      errors.Try([&] { Fill(param->filler, param->shape, key, 0, spec, host); });
    }
    store.Import(*param, host, param->weight);
  }
  errors.Throw();
}

// Each once, in the order of the steps.
std::vector<Param*> ListParams(const Graph& graph) {
  std::vector<Param*> params;
  for (const StepInfo& step : graph.steps) {
    for (Param* param : step.params()) {
      if (std::ranges::find(params, param) == params.end()) params.push_back(param);
    }
  }
  return params;
}

// Those of a part of a larger net were connected, and got their splits, with the whole of it.
std::vector<LayerSpec> LayersOf(const NetSpec& spec, const NetOptions& options) {
  const bool is_part = !options.edges.in.empty() || !options.edges.out.empty();
  return is_part ? spec.layers : ConnectedLayers(spec, options.state);
}

std::unique_ptr<const Graph> MakeGraph(const NetSpec& spec, const std::vector<LayerSpec>& layers,
                                       const BuildEnv& env, const NetLog& log) {
  auto graph = std::make_unique<Graph>();
  DescribeLayers(layers, ChooseTypes(spec, layers, env.device), env, *graph);
  ConnectEdges(env.options.edges, *graph);
  log.Layers(*graph);
  FuseLayers(env, *graph);
  PlanGradients(env.options, *graph);
  OrderGradients(*graph);
  if (env.options.keeps_batch) KeepBatch(*graph);
  PrepareLayers(env, *graph);
  PlanRecompute(env.options, *graph);
  PlanMemory(env.options, *graph);
  FitActivationBudget(env.options, *graph);
  if (!env.options.any_size) RequireDeviceMemory(*graph, env);
  return graph;
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
      debug_(spec.proto.debug_info()) {
  options_.force_backward = options.force_backward || spec.proto.force_backward();
  options_.recompute = options.recompute || spec.proto.recompute();
  options_.fuse = options.fuse && !debug_;
  const NetLog log(options_.log);
  log.Rules(spec, options_.state);
  const std::vector<LayerSpec> layers = LayersOf(spec, options_);
  if (layers.empty()) {
    throw Error(
        ErrorCode::kConfig, {spec.file},
        Join("net '", name_, "' has no layer in phase ", caffe::Phase_Name(options_.state.phase()),
             "; check its include and exclude rules"));
  }
  log.Start(name_, layers, options_.state);
  const BuildEnv env{options_, device_, params_};
  graph_ = MakeGraph(spec, layers, env, log);
  learnable_ = ListParams(*graph_);
  if (options_.plan_only) return;
  params_.Allocate(options_.training);
  FillParams(*graph_, options_.seed, params_);
  ListSlices();
  MakeSlots(env);
  runs_ahead_ = device_.RunsLater() && options_.parts == 1 && options_.slots == 1 &&
                std::ranges::none_of(graph_->steps, &StepInfo::shapes_vary);
  PrepareToRecord();
  KeepPartStates();
  if (options_.keeps_batch)
    kept_states_ = std::make_unique<KeptStates>(*graph_, *program_, device_);
  log.Gradients(*graph_);
  log.End(*this, options_.state);
}

Net::~Net() = default;

float Net::Forward(NetBatch batch) {
  RequireNoneStarted();
  StartForward(batch);
  return TakeLoss();
}

void Net::StartForward(NetBatch batch) {
  if (batch == NetBatch::kSame) {
    ComputeAgain();
  } else {
    BeginPass();
    for (int i = 0; i < NumLayers(); ++i) {
      ForwardLayer(i);
      if (LogsDebugInfo())
        DebugInfo(*graph_, device_).Forward(StepId(i), state_->Of(StepId(i)).forward);
    }
  }
  SendLosses();
}

void Net::SendLosses() {
  program_->exchange().Gather(state_->losses());
  program_->exchange().LayOut(false);
  program_->exchange().Send(false);
}

void Net::BeginPass() {
  if (part_ == 0) ++passes_;
  program_->exchange().Begin(passes_ - 1);
  if (kept_states_ != nullptr) kept_states_->Save();
}

void Net::ForwardLayer(int i) {
  const StepId id(i);
  const StepInfo& step = graph_->steps[id];
  if (step.fused_into) return;
  state_->BeforeForward(id);
  if (state_->IsSkipped(id)) {
    state_->SkipForward(id);
  } else {
    step.layer->Forward(state_->Of(id).forward);
    // A device that runs later is asked when the pass is done: an answer waits for the step.
    if (!device_.RunsLater()) CheckFault(i, program_->exchange().TakeFault(id), 0);
  }
  state_->AfterForward(id);
  if (options_.memory == MemoryMode::kPoisoned) program_->Poison(graph_->ForwardTime(id));
}

void Net::BackwardLayer(int i) {
  const StepId id(i);
  const StepInfo& step = graph_->steps[id];
  if (step.runs_backward) {
    for (const ValueId value : step.recompute) {
      graph_->steps[graph_->values[value].writer].layer->Recompute(program_->Recompute(value));
    }
    if (state_->IsSkipped(id)) {
      state_->SkipBackward(id);
    } else {
      step.layer->Backward(state_->Of(id).backward);
    }
  }
  if (options_.memory == MemoryMode::kPoisoned) program_->Poison(graph_->BackwardTime(id));
}

// Throws where the kernels of layer i reported something in `word`, in the last pass or some
// before.
void Net::CheckFault(int i, uint64_t word, uint32_t batches_ago) const {
  if (word == FaultWord::kNone) return;
  const StepInfo& step = graph_->steps[StepId(i)];
  try {
    step.layer->ThrowFault(state_->Of(StepId(i)).forward, FaultWord::IndexOf(word),
                           FaultWord::NumberOf(word));
  } catch (const ItemError& error) {
    throw WithItemsName(*graph_, step, error, batches_ago);
  }
}

float Net::Loss() {
  RequireNoneStarted();
  SendLosses();
  return TakeLoss();
}

void Net::RequireNoneStarted() const {
  if (NumStarted() > 0) throw Error(ErrorCode::kInternal, "a loss before this one is not taken");
}

int Net::NumStarted() const { return program_->exchange().NumSent(); }

float Net::TakeLoss() {
  const PassExchange::Results results = program_->exchange().Receive();
  for (size_t i = 0; i < results.faults.size(); ++i) {
    CheckFault(static_cast<int>(i), results.faults[i], passes_ - 1 - results.pass);
  }
  const float* number = results.losses.data();
  float loss = 0;
  for (const NetOutput& output : state_->losses()) {
    float value = 0;
    for (int64_t i = 0; i < output.value.Count(); ++i) value += *number++;
    loss += output.loss_weight * value;
  }
  return loss;
}

int Net::NumLayers() const { return graph_->steps.size(); }
const LayerSpec& Net::LayerAt(int i) const { return graph_->steps[StepId(i)].spec; }
Layer& Net::GetLayer(int i) const { return *graph_->steps[StepId(i)].layer; }
bool Net::RunsBackward(int i) const { return graph_->steps[StepId(i)].runs_backward; }
int Net::FusedInto(int i) const { return graph_->steps[StepId(i)].fused_into.number; }
const MemoryPlan& Net::memory_plan() const { return graph_->plan; }
const std::vector<NetOutput>& Net::outputs() const {
  static const std::vector<NetOutput> none;
  return state_ == nullptr ? none : state_->outputs();
}

Tensor Net::Find(const std::string& blob, bool gradient) const {
  const auto found = graph_->newest.find(blob);
  if (found == graph_->newest.end()) return {};
  const ValueInfo& value = graph_->values[found->second];
  const BlockId block = gradient ? value.grad_block : value.block;
  const Shape& shape = state_ == nullptr ? value.shape : state_->ShapeOf(found->second);
  return {program_ == nullptr ? nullptr : program_->At(block), shape, value.dtype};
}

Tensor Net::Value(const std::string& blob) const { return Find(blob, false); }
Tensor Net::Gradient(const std::string& blob) const { return Find(blob, true); }

const ConstTensor& Net::Input(int i, int bottom) const {
  return state_->Of(StepId(i)).forward.In(bottom);
}

const Tensor& Net::Output(int i, int top) const { return state_->Of(StepId(i)).forward.Out(top); }

void Net::ReadPlain(const ConstTensor& value, std::span<float> host) const {
  trainer::ReadPlain(device_, value, host);
}

void Net::WritePlain(std::span<const float> host, const Tensor& value) const {
  trainer::WritePlain(device_, host, value);
}

}  // namespace trainer

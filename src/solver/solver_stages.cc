// Gathers the stages of a pipeline on rank 0 for a snapshot and picks this rank's stage out of one.
// Files always hold the whole net.

#include <algorithm>
#include <utility>

#include "solver_context.h"
#include "trainer/base/error/error.h"
#include "trainer/checkpoint/snapshot_writer.h"
#include "trainer/net/weights.h"
#include "trainer/solver/solver.h"

namespace trainer {
namespace {

template <class Message>
Message Parsed(const std::string& bytes) {
  Message message;
  if (!message.ParseFromString(bytes)) {
    throw Error(ErrorCode::kProtocol, "the part of a snapshot that another rank sent is damaged");
  }
  return message;
}

// Joins the histories of all stages. The order is by state array, then by stage, then by parameter.
void JoinHistories(std::vector<caffe::SolverState> stage_states, size_t kinds,
                   caffe::SolverState* state) {
  state->clear_history();
  for (size_t kind = 0; kind < kinds; ++kind) {
    for (caffe::SolverState& stage_state : stage_states) {
      const auto count = static_cast<size_t>(stage_state.history_size()) / kinds;
      for (size_t i = 0; i < count; ++i) {
        stage_state.mutable_history(static_cast<int>(kind * count + i))->Swap(state->add_history());
      }
    }
  }
}

}  // namespace

void Solver::SendStageState() {
  const auto send = [&](const google::protobuf::Message& stage_state) {
    run_->partition->Collect(stage_state.SerializeAsString(), nullptr);
  };
  caffe::NetParameter model;
  WeightsTo(*train_net_, run_->proto.snapshot_diff(), &model);
  send(model);
  caffe::SolverState state;
  HistoryTo(&state);
  send(state);
  if (!ema_) return;
  ema_->ToProto(&model);
  send(model);
}

void Solver::GatherStageStates(SnapshotContent* content) {
  const auto add_layers = [&](caffe::NetParameter* model) {
    run_->partition->Collect("", [&](const std::string& bytes) {
      auto stage_state = Parsed<caffe::NetParameter>(bytes);
      for (caffe::LayerParameter& layer : *stage_state.mutable_layer())
        model->add_layer()->Swap(&layer);
    });
  };
  add_layers(&content->model);
  std::vector<caffe::SolverState> states(1);
  states[0].mutable_history()->Swap(content->state.mutable_history());
  run_->partition->Collect(
      "", [&](const std::string& bytes) { states.push_back(Parsed<caffe::SolverState>(bytes)); });
  JoinHistories(std::move(states), optimizer_->state_arrays().size(), &content->state);
  if (ema_) add_layers(&content->averaged);
}

// Returns the model without the layers of other ranks' stages.
caffe::NetParameter Solver::OwnStage(caffe::NetParameter model) const {
  if (run_->partition == nullptr) return model;
  const std::map<std::string, int>& stage_of = run_->partition->WholeNet(kTrainNet).stage_of;
  caffe::NetParameter own;
  own.set_name(model.name());
  for (caffe::LayerParameter& layer : *model.mutable_layer()) {
    const auto known = stage_of.find(layer.name());
    if (known == stage_of.end() || known->second == run_->rank.rank) own.add_layer()->Swap(&layer);
  }
  return own;
}

// Returns the index of a parameter's history in a snapshot of the whole net.
int Solver::HistoryIndex(size_t kind, size_t param) const {
  size_t before = 0;
  for (int rank = 0; run_->partition != nullptr && rank < run_->rank.rank; ++rank) {
    before +=
        static_cast<size_t>(run_->partition->WholeNet(kTrainNet).params[static_cast<size_t>(rank)]);
  }
  return static_cast<int>(kind * WholeParams() + before + param);
}

size_t Solver::WholeParams() const {
  if (run_->partition == nullptr) return train_net_->params().size();
  size_t count = 0;
  for (const int of_stage : run_->partition->WholeNet(kTrainNet).params) {
    count += static_cast<size_t>(of_stage);
  }
  return count;
}

uint64_t Solver::WholeWeightBytes() const {
  if (run_->partition == nullptr) return params_.WeightBytes();
  uint64_t bytes = 0;
  for (const size_t of_stage : run_->partition->WholeNet(kTrainNet).weight_bytes) bytes += of_stage;
  return bytes;
}

std::vector<std::string> Solver::OutputNames(int net) const {
  std::vector<std::string> names;
  if (run_->partition != nullptr) {
    for (const StageOutput& output : run_->partition->WholeNet(net).outputs)
      names.push_back(output.name);
    return names;
  }
  const Net& whole = *test_nets_[static_cast<size_t>(net - 1)];
  for (const NetOutput& output : whole.outputs()) names.push_back(output.name);
  return names;
}

// Returns the outputs of the whole net, with -0 in place of other stages' numbers: x + -0 is x, so
// the sum over the ranks gives each number unchanged.
std::vector<ReportedValue> Solver::LayOutOutputs(const Net& net, int number) const {
  std::vector<ReportedValue> values;
  std::vector<float> host;
  size_t next = 0;
  for (const StageOutput& output : run_->partition->WholeNet(number).outputs) {
    host.assign(static_cast<size_t>(output.count), -0.0f);
    if (output.stage == run_->rank.rank) net.ReadNchw(net.outputs()[next++].value, host);
    for (const float value : host) values.push_back({output.name, value, output.loss_weight});
  }
  return values;
}

std::vector<ReportedValue> Solver::SumOutputs(std::vector<ReportedValue> values) const {
  std::vector<float> numbers;
  for (const ReportedValue& value : values) numbers.push_back(value.value);
  run_->group->AllReduce(numbers);
  for (size_t i = 0; i < values.size(); ++i) values[i].value = numbers[i];
  return values;
}

}  // namespace trainer

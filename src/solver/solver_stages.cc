// Gathers the stages of a pipeline on rank 0 for a snapshot and picks this rank's stage out of one.
// Files always hold the whole net.

#include <algorithm>
#include <utility>

#include "solver_context.h"
#include "trainer/base/error/error.h"
#include "trainer/checkpoint/snapshot_writer.h"
#include "trainer/net/weights.h"
#include "trainer/solver/solver.h"
#include "training_model.h"

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
  WeightsTo(*model_->net, run_->proto.snapshot_diff(), &model);
  send(model);
  caffe::SolverState state;
  HistoryTo(&state);
  send(state);
  if (!model_->ema) return;
  model_->ema->ToProto(&model);
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
  JoinHistories(std::move(states), model_->optimizer->state_arrays().size(), &content->state);
  if (model_->ema) add_layers(&content->averaged);
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
  if (run_->partition == nullptr) return model_->net->params().size();
  size_t count = 0;
  for (const int of_stage : run_->partition->WholeNet(kTrainNet).params) {
    count += static_cast<size_t>(of_stage);
  }
  return count;
}

uint64_t Solver::WholeWeightBytes() const {
  if (run_->partition == nullptr) return model_->params.WeightBytes();
  uint64_t bytes = 0;
  for (const size_t of_stage : run_->partition->WholeNet(kTrainNet).weight_bytes) bytes += of_stage;
  return bytes;
}

}  // namespace trainer

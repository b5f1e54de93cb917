#include "sharded_model.h"

#include <map>
#include <utility>

#include "trainer/base/error/error.h"
#include "trainer/net/weights.h"

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

void SendStage(const SolverContext& run, const TrainingModel& model) {
  const auto send = [&](const google::protobuf::Message& stage_state) {
    run.pipeline->Collect(stage_state.SerializeAsString(), nullptr);
  };
  caffe::NetParameter weights;
  WeightsTo(*model.net, run.proto.snapshot_diff(), &weights);
  send(weights);
  caffe::SolverState state;
  model.HistoryTo(&state);
  send(state);
  if (!model.ema) return;
  model.ema->ToProto(&weights);
  send(weights);
}

void GatherStages(const SolverContext& run, const TrainingModel& model, SnapshotContent* content) {
  const auto add_layers = [&](caffe::NetParameter* whole) {
    run.pipeline->Collect("", [&](const std::string& bytes) {
      auto stage_state = Parsed<caffe::NetParameter>(bytes);
      for (caffe::LayerParameter& layer : *stage_state.mutable_layer())
        whole->add_layer()->Swap(&layer);
    });
  };
  add_layers(&content->model);
  std::vector<caffe::SolverState> states(1);
  states[0].mutable_history()->Swap(content->state.mutable_history());
  run.pipeline->Collect(
      "", [&](const std::string& bytes) { states.push_back(Parsed<caffe::SolverState>(bytes)); });
  JoinHistories(std::move(states), model.optimizer->state_arrays().size(), &content->state);
  if (model.ema) add_layers(&content->averaged);
}

caffe::NetParameter OwnStage(const SolverContext& run, caffe::NetParameter whole) {
  if (run.pipeline == nullptr) return whole;
  const std::map<std::string, int>& stage_of = run.pipeline->WholeNet(kTrainNet).stage_of;
  caffe::NetParameter own;
  own.set_name(whole.name());
  for (caffe::LayerParameter& layer : *whole.mutable_layer()) {
    const auto known = stage_of.find(layer.name());
    if (known == stage_of.end() || known->second == run.rank.rank) own.add_layer()->Swap(&layer);
  }
  return own;
}

std::vector<ReportedValue> ReadOutputs(const SolverContext& run, const Net& net, int number) {
  std::vector<ReportedValue> values;
  std::vector<float> host;
  if (run.pipeline != nullptr) {
    values = OutputsOfStage(run, net, number);
    for (const ReportedValue& value : values) host.push_back(value.value);
    run.group->AllReduce(host);
    for (size_t i = 0; i < values.size(); ++i) values[i].value = host[i];
    return values;
  }
  for (const NetOutput& output : net.outputs()) {
    host.resize(static_cast<size_t>(output.value.Count()));
    net.ReadNchw(output.value, host);
    for (const float value : host) values.push_back({output.name, value, output.loss_weight});
  }
  return values;
}

std::vector<ReportedValue> OutputsOfStage(const SolverContext& run, const Net& net, int number) {
  std::vector<ReportedValue> values;
  std::vector<float> host;
  size_t next = 0;
  for (const StageOutput& output : run.pipeline->WholeNet(number).outputs) {
    host.assign(static_cast<size_t>(output.count), -0.0f);
    if (output.stage == run.rank.rank) net.ReadNchw(net.outputs()[next++].value, host);
    for (const float value : host) values.push_back({output.name, value, output.loss_weight});
  }
  return values;
}

int HistoryIndex(const SolverContext& run, const TrainingModel& model, size_t kind, size_t param) {
  size_t before = 0;
  for (int rank = 0; run.pipeline != nullptr && rank < run.rank.rank; ++rank) {
    before +=
        static_cast<size_t>(run.pipeline->WholeNet(kTrainNet).params[static_cast<size_t>(rank)]);
  }
  return static_cast<int>(kind * WholeParams(run, model) + before + param);
}

size_t WholeParams(const SolverContext& run, const TrainingModel& model) {
  if (run.pipeline == nullptr) return model.net->params().size();
  size_t count = 0;
  for (const int of_stage : run.pipeline->WholeNet(kTrainNet).params) {
    count += static_cast<size_t>(of_stage);
  }
  return count;
}

uint64_t WholeWeightBytes(const SolverContext& run, const TrainingModel& model) {
  if (run.pipeline == nullptr) return model.params.WeightBytes();
  uint64_t bytes = 0;
  for (const size_t of_stage : run.pipeline->WholeNet(kTrainNet).weight_bytes) bytes += of_stage;
  return bytes;
}

}  // namespace trainer

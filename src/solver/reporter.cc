#include "reporter.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "sharded_model.h"
#include "trainer/base/text/text.h"
#include "trainer/net/data_layers.h"

namespace trainer {
namespace {

constexpr int64_t kShownImages = 16;

// Returns whether a data layer's output is still in memory: no other value has overwritten it
// since.
bool IsIntact(const Net& net, const std::string& blob) {
  const IdVector<BufferId, Buffer>& blocks = net.graph().memory.buffers;
  const auto own = std::ranges::find_if(blocks, [&](const Buffer& block) {
    return block.kind == BufferKind::kActivation && block.name == blob;
  });
  if (own == blocks.end() || own->note.find("(in place)") != std::string::npos) return false;
  return std::ranges::none_of(blocks, [&](const Buffer& other) {
    return other.first_use > own->first_use && other.offset < own->offset + own->bytes &&
           own->offset < other.offset + other.bytes;
  });
}

bool LooksLikeImages(const Shape& shape) {
  return shape.IsImage() && (shape[1] == 1 || shape[1] == 3) && shape[2] > 1 && shape[3] > 1;
}

}  // namespace

Reporter::Reporter(const SolverContext& run, TrainingModel& model, const Tester& tester,
                   bool shows_numbers)
    : run_(run), model_(model), tester_(tester), shows_numbers_(shows_numbers) {
  Attach();
}

void Reporter::Attach() {
  const bool measures = run_.DataGroup() != nullptr && run_.group->stats();
  if (measures && run_.strategy.traits().synchronous) {
    times_ = std::make_unique<RankTimes>(*run_.group, *model_.net);
  }
  data_waited_ = SecondsWaitedForData(*model_.net);
  model_.objective->OnFirstVirtualRank([this] {
    if (run_.IsDisplayed()) first_outputs_ = ReadOutputs(run_, *model_.net, kTrainNet);
  });
}

void Reporter::Begin() {
  const int64_t records =
      RecordsPerPass(*model_.net) * run_.proto.iter_size() * model_.virtual_ranks.first.size;
  run_.observer.OnStart({model_.net->graph().name, run_.proto.lr_policy(), run_.iter,
                         run_.proto.max_iter(), records, run_.seed});
  last_time_ = std::chrono::steady_clock::now();
  last_iter_ = run_.iter;
  data_waited_ = SecondsWaitedForData(*model_.net);
  if (times_) times_->Restart();
}

bool Reporter::ShowsDebugInfo() const {
  const bool debug_info = run_.proto.debug_info() || run_.spec.train.net->proto.debug_info();
  return debug_info && run_.IsDisplayed() && run_.rank.rank == 0;
}

void Reporter::Report(float rate) {
  if (run_.IsDisplayed()) Display(rate);
  if (ShowsNumbers()) ShowNumbers();
}

void Reporter::Display(float rate) {
  const auto now = std::chrono::steady_clock::now();
  const std::chrono::duration<double> passed = now - std::exchange(last_time_, now);
  IterationReport report;
  report.iter = run_.iter;
  report.loss = run_.losses.mean();
  report.rate = rate;
  report.seconds = passed.count();
  report.iterations = run_.iter - std::exchange(last_iter_, run_.iter);
  report.epoch = EpochOf(*model_.net);
  const double waited = SecondsWaitedForData(*model_.net);
  report.data_seconds = waited - std::exchange(data_waited_, waited);
  const std::vector<ReportedValue> outputs = model_.virtual_ranks.count > 1
                                                 ? std::move(first_outputs_)
                                                 : ReadOutputs(run_, *model_.net, kTrainNet);
  report.outputs = outputs;
  AddLossScale(&report);
  run_.observer.OnIteration(report);
  const std::string cores = cores_.Note(report.seconds);
  const std::string data = input_waits_.Note(*model_.net, report.seconds);
  if (times_ && report.iterations > 0) run_.observer.OnRanks(times_->Report());
  for (const std::string& text : {cores, data}) {
    if (!text.empty()) run_.observer.OnNote(text);
  }
}

void Reporter::ReportAfterLast(float loss) {
  IterationReport report;
  report.iter = run_.iter;
  report.loss = loss;
  report.after_last = true;
  AddLossScale(&report);
  run_.observer.OnIteration(report);
}

void Reporter::AddLossScale(IterationReport* report) const {
  if (const std::optional<LossScaleState> scale = model_.optimizer->LossScale()) {
    report->loss_scale = scale->factor;
    report->skipped_steps = static_cast<int64_t>(scale->skipped);
  }
}

bool Reporter::ShowsNumbers() const {
  return shows_numbers_ && (tester_.IsAtInterval() || !showed_batch_);
}

// Called after the gradients are reduced and before the update. All ranks call Gradients(), which
// waits for the sums; rank 0 shows them.
void Reporter::ShowNumbers() {
  const std::span<float> gradients = model_.objective->Gradients();
  showed_batch_ = showed_batch_ || run_.rank.rank != 0;
  if (run_.rank.rank != 0) return;
  const std::optional<LossScaleState> scale = model_.optimizer->LossScale();
  const float factor = scale ? scale->factor : 1;
  std::vector<float> weights, sums;
  for (const Param* param : model_.net->params()) {
    ParamReport report;
    report.iter = run_.iter;
    report.name = Join(param->layer, "/", param->index);
    report.shape = param->shape.dims();
    report.gradient_scale = model_.objective->GradientScale() / factor;
    weights.resize(static_cast<size_t>(param->count()));
    if (param->shape.IsImage()) {
      model_.params.Export(*param, param->weight, weights);
    } else {
      run_.device.CopyToHost(weights.data(), param->weight, weights.size() * sizeof(float));
    }
    report.weights = weights;
    if (param->grad != nullptr && !gradients.empty()) {
      sums.resize(weights.size());
      run_.device.CopyToHost(sums.data(), param->grad, sums.size() * sizeof(float));
      report.gradients = sums;
    }
    run_.observer.OnParam(report);
  }
  if (!showed_batch_) ShowBatch();
  showed_batch_ = true;
}

// Shows the outputs of data layers that look like images and are still in memory.
void Reporter::ShowBatch() const {
  const Graph& graph = model_.net->graph();
  for (const Node& node : graph.nodes) {
    if (!node.in.empty()) continue;
    for (const ValueId out : node.out) {
      const Tensor value = model_.net->Value(out);
      const std::string& blob = graph.values[out].name;
      if (!LooksLikeImages(value.shape) || !IsIntact(*model_.net, blob)) continue;
      const Shape shape = value.shape.With(0, std::min(value.shape[0], kShownImages));
      std::vector<float> numbers(static_cast<size_t>(shape.Count()));
      model_.net->ReadNchw(Tensor{value.data, shape, value.dtype}, numbers);
      run_.observer.OnBatch({run_.iter, blob, shape.dims(), numbers});
    }
  }
}

}  // namespace trainer

// Shows weights, gradients and images to the observers of the run.

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "solver_context.h"
#include "tester.h"
#include "trainer/base/text/text.h"
#include "trainer/net/data_layers.h"
#include "trainer/solver/solver.h"
#include "training_model.h"

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

int64_t Solver::RecordsPerIteration() const {
  return RecordsPerPass(*model_->net) * run_->proto.iter_size() * model_->virtual_ranks.first.size;
}

bool Solver::ShowsNumbers() const {
  return shows_numbers_ && (tester_->IsAtInterval() || !showed_batch_);
}

// Called after the gradients are reduced and before the update. All ranks call Gradients(), which
// waits for the sums; rank 0 shows them.
void Solver::ShowNumbers() {
  const std::span<float> gradients = model_->objective->Gradients();
  showed_batch_ = showed_batch_ || run_->rank.rank != 0;
  if (run_->rank.rank != 0) return;
  const std::optional<LossScaleState> scale = model_->optimizer->LossScale();
  const float factor = scale ? scale->factor : 1;
  std::vector<float> weights, sums;
  for (const Param* param : model_->net->params()) {
    ParamReport report;
    report.iter = run_->iter;
    report.name = Join(param->layer, "/", param->index);
    report.shape = param->shape.dims();
    report.gradient_scale = model_->objective->GradientScale() / factor;
    weights.resize(static_cast<size_t>(param->count()));
    if (param->shape.IsImage()) {
      model_->params.Export(*param, param->weight, weights);
    } else {
      run_->device.CopyToHost(weights.data(), param->weight, weights.size() * sizeof(float));
    }
    report.weights = weights;
    if (param->grad != nullptr && !gradients.empty()) {
      sums.resize(weights.size());
      run_->device.CopyToHost(sums.data(), param->grad, sums.size() * sizeof(float));
      report.gradients = sums;
    }
    run_->observer.OnParam(report);
  }
  if (!showed_batch_) ShowBatch();
  showed_batch_ = true;
}

// Shows the outputs of data layers that look like images and are still in memory.
void Solver::ShowBatch() {
  const Graph& graph = model_->net->graph();
  for (const Node& node : graph.nodes) {
    if (!node.in.empty()) continue;
    for (const ValueId out : node.out) {
      const Tensor value = model_->net->Value(out);
      const std::string& blob = graph.values[out].name;
      if (!LooksLikeImages(value.shape) || !IsIntact(*model_->net, blob)) continue;
      const Shape shape = value.shape.With(0, std::min(value.shape[0], kShownImages));
      std::vector<float> numbers(static_cast<size_t>(shape.Count()));
      model_->net->ReadNchw(Tensor{value.data, shape, value.dtype}, numbers);
      run_->observer.OnBatch({run_->iter, blob, shape.dims(), numbers});
    }
  }
}

}  // namespace trainer

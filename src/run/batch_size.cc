#include "batch_size.h"

#include <glog/logging.h>

#include <cmath>
#include <limits>
#include <set>

#include "trainer/base/error/error.h"
#include "trainer/base/text/parse_number.h"
#include "trainer/base/text/text.h"
#include "trainer/config/batch_size.h"

namespace trainer {
namespace {

// Throws kUsage unless `text` is a number from 1 to 2^24.
uint32_t ParseBatchSize(const std::string& text) {
  const uint32_t batch = ParseNumber<uint32_t>(text).value_or(0);
  if (batch == 0 || batch > 1 << 24) {
    throw Error(ErrorCode::kUsage,
                Join("--batch=", EscapeControl(text),
                     ": give the number of images in a batch, such as 64, or auto"));
  }
  return batch;
}

// Returns a note in parentheses for the log: by which factor the new batch size usually changes the
// learning rate, or that no rule is known for the solver's type.
std::string RateAdvice(uint32_t before, uint32_t batch, const SolverSpec& spec) {
  const double times = static_cast<double>(batch) / before;
  const std::optional<double> factor = RateFactor(spec, times);
  const std::string find = Join("'trainer find-lr --batch=", batch, "' tries learning rates)");
  if (!factor) {
    return Join(" (no rule says how to scale the learning rate of type ", spec.proto.type(),
                " with the batch: ", find);
  }
  return Join(" (", static_cast<float>(times), " times the batch size ",
              ScalesByRoot(spec) ? "sometimes" : "often", " needs ", static_cast<float>(*factor),
              " times the learning rate, with a warm-up: ", find);
}

}  // namespace

std::vector<LayerSpec*> TrainingLayers(SolverSpec* spec) { return LayersOfUse(spec->train, spec); }

std::vector<LayerSpec*> LayersOfUse(const NetUse& use, SolverSpec* spec) {
  std::set<std::string> kept;
  const auto key = [](const LayerSpec& layer) {
    return Join(layer.name(), "\n", layer.Where().ToString());
  };
  for (const LayerSpec& layer : FilterLayers(*use.net, use.state)) {
    kept.insert(key(layer));
  }
  std::vector<LayerSpec*> layers;
  for (NetSpec& net : spec->nets) {
    for (LayerSpec& layer : net.layers) {
      if (&net == use.net && kept.contains(key(layer))) layers.push_back(&layer);
    }
  }
  return layers;
}

void ChangeTrainingBatches(SolverSpec* spec,
                           const std::function<int64_t(const LayerSpec&, int64_t)>& change) {
  for (LayerSpec* layer : TrainingLayers(spec)) {
    ChangeBatchSizes(&layer->mutable_proto(), false,
                     [&](int64_t size) { return change(*layer, size); });
  }
}

// The result 0 is not ambiguous, because building the net refuses a batch_size of 0.
uint32_t BatchSizeOf(SolverSpec* spec) {
  int64_t first = 0;
  ChangeTrainingBatches(spec, [&](const LayerSpec&, int64_t size) {
    if (first == 0) first = size;
    return size;
  });
  return static_cast<uint32_t>(first);
}

void SetBatchSize(uint32_t batch, SolverSpec* spec) {
  const int64_t before = BatchSizeOf(spec);
  if (before == 0) {
    throw Error(ErrorCode::kUsage, {spec->train.net->file},
                "no data layer of the training net has a batch_size to change; change the shapes "
                "in the file");
  }
  const auto scaled = [&](const LayerSpec& layer, int64_t size) {
    if (size * batch % before == 0 &&
        size * batch / before <= std::numeric_limits<int32_t>::max()) {
      return size * batch / before;
    }
    throw Error(
        ErrorCode::kUsage, layer.Where(),
        Join("layer '", layer.name(), "' has batch_size ", size, ", and another data layer has ",
             before, "; with ", batch,
             " there, this one would not be a whole number; choose a multiple of ", before));
  };
  ChangeTrainingBatches(spec, [&](const LayerSpec& layer, int64_t size) {
    static_cast<void>(scaled(layer, size));
    return size;
  });
  ChangeTrainingBatches(spec, scaled);
}

bool ScalesByRoot(const SolverSpec& spec) {
  return spec.proto.type() == "Adam" || spec.proto.type() == "AdamW";
}

std::optional<double> RateFactor(const SolverSpec& spec, double times) {
  if (ScalesByRoot(spec)) return std::sqrt(times);
  const std::string& type = spec.proto.type();
  if (type == "SGD" || type == "Nesterov") return times;
  return std::nullopt;
}

void ChangeBatchSize(uint32_t batch, const std::string& reason, SolverSpec* spec) {
  const uint32_t before = BatchSizeOf(spec);
  SetBatchSize(batch, spec);
  LOG(INFO) << EscapeControl(
      Join("--batch: batch_size ", batch, reason, " in place of ", before, "; base_lr ",
           spec->proto.base_lr(), " and ",
           spec->proto.has_max_epoch() ? Join("max_epoch ", spec->proto.max_epoch())
                                       : Join("max_iter ", spec->proto.max_iter()),
           " are unchanged", batch == before ? "" : RateAdvice(before, batch, *spec)));
}

void ApplyBatchSize(const std::string& batch, const Rank& rank, SolverSpec* spec) {
  if (batch.empty()) return;
  if (batch != kBestBatch) return ChangeBatchSize(ParseBatchSize(batch), "", spec);
  if (rank.size > 1 || spec->proto.virtual_ranks() > 1) {
    throw Error(ErrorCode::kUsage,
                "--batch=auto works with one rank only; find the batch size of one rank with "
                "'trainer find-batch', then pass it with --batch=N");
  }
}

}  // namespace trainer

#include "loss/loss_normalizer.h"

#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using Mode = caffe::LossParameter;

// Returns the loss of row i, or 0 for a mark.
struct RowLoss {
  const float* loss;
  HD float operator()(int64_t i) const {
    return loss[i] == kIgnoredRow || loss[i] == kBadRow ? 0.0f : loss[i];
  }
};

// Returns 1 for an ignored row, else 0: a term of their number.
struct IsIgnored {
  const float* loss;
  HD float operator()(int64_t i) const { return loss[i] == kIgnoredRow ? 1.0f : 0.0f; }
};

// Returns the weight of row i, for the sum.
struct RowWeight {
  const float* weight;
  HD float operator()(int64_t i) const { return weight[i]; }
};

// Computes the normalizer and the loss, in one thread. All counts are sums over all replicas, and
// the normalizer is their share per replica: see LossNormalizer.
struct DivideTotal {
  LossAccumulators* head;
  float* out;
  float fixed;  // 0: count the valid rows
  float rows;
  bool weighted;
  float replicas;

  HD void operator()(int64_t) const {
    const float count = fixed > 0 ? fixed : rows - head->ignored;
    float normalizer = count > 1 ? count : 1.0f;
    if (weighted && fixed == 0) normalizer = head->weight > 0 ? head->weight : 1.0f;
    head->normalizer = normalizer / replicas;
    *out = head->sum / head->normalizer;
  }
};

// Throws kConfig for weights in loss_param that the layer's type does not support.
void RefuseForeignWeights(const LayerSpec& spec) {
  const caffe::LossParameter& loss = spec.proto().loss_param();
  const bool sigmoid = spec.type() == "SigmoidCrossEntropyLoss";
  const bool classes = spec.type() == "SoftmaxWithLoss" || spec.type() == "InfogainLoss" ||
                       spec.type() == "SoftmaxFocalLoss";
  const bool power = loss.has_class_weight_power();
  if (!classes && (power || loss.class_weight_size() > 0)) {
    const char* const field = power ? "class_weight_power" : "class_weight";
    spec.FailIn(
        "loss_param", field,
        Join("only SoftmaxWithLoss, SoftmaxFocalLoss and InfogainLoss support ", field,
             sigmoid ? "; pos_weight is the weight of the targets that are 1" : "; remove it"));
  }
  if (!sigmoid && loss.pos_weight_size() > 0) {
    spec.FailIn("loss_param", "pos_weight",
                Join("only SigmoidCrossEntropyLoss supports pos_weight; ",
                     classes ? "class_weight is the weight of a class" : "remove it"));
  }
}

}  // namespace

LabelRule LabelRuleOf(const LayerSpec& spec, int64_t classes) {
  const caffe::LossParameter& loss = spec.proto().loss_param();
  return {classes, loss.has_ignore_label(), loss.ignore_label()};
}

LossNormalizer::LossNormalizer(const LayerSpec& spec, Mode::NormalizationMode standard)
    : mode_(standard), has_ignore_(spec.proto().loss_param().has_ignore_label()) {
  const caffe::LossParameter& loss = spec.proto().loss_param();
  RefuseForeignWeights(spec);
  has_weights_ = loss.class_weight_size() > 0 || loss.has_class_weight_power();
  if (loss.has_normalization()) {
    mode_ = loss.normalization();
  } else if (loss.has_normalize()) {
    mode_ = loss.normalize() ? Mode::VALID : Mode::BATCH_SIZE;
  }
}

// Returns the divisor if it does not depend on the labels, else 0.
float LossNormalizer::FixedDivisor(float replicas) const {
  if (mode_ == Mode::FULL) return static_cast<float>(rows_) * replicas;
  if (mode_ == Mode::BATCH_SIZE) return static_cast<float>(outer_) * replicas;
  return mode_ == Mode::NONE ? 1.0f : 0.0f;
}

// Sums the number of ignored rows, and the weights, over all replicas.
void LossNormalizer::SumCounts(const Device& device, bool weighted, LossAccumulators* head) const {
  LossAccumulators host;
  device.CopyToHost(&host, head, sizeof(host));
  float counts[] = {host.ignored, weighted ? host.weight : 0.0f};
  replicas_.sum(counts);
  host.ignored = counts[0];
  host.weight = counts[1];
  device.CopyToDevice(head, &host, sizeof(host));
}

bool LossNormalizer::Varies() const {
  return mode_ == Mode::VALID && (has_ignore_ || has_weights_);
}

void LossNormalizer::BeginPass(int pass, int passes) {
  passes_ = passes;
  if (pass == 0) counted_ = 0;
}

// Replaces the divisor of the gradients by the mean count of the passes so far. The sum of all
// passes' gradients is later divided by the number of passes, so it becomes the mean over labels.
void LossNormalizer::AddPassCount(const Device& device, bool weighted, LossAccumulators* head) {
  LossAccumulators host;
  device.CopyToHost(&host, head, sizeof(host));
  const auto replicas = static_cast<double>(replicas_.count);
  const double before = counted_;
  counted_ += weighted ? host.weight : static_cast<double>(rows_) * replicas - host.ignored;
  const double divisor = counted_ > 0 ? counted_ : 1;
  scale_of_earlier_ = static_cast<float>(before / divisor);
  host.normalizer = static_cast<float>(divisor / passes_ / replicas);
  device.CopyToDevice(head, &host, sizeof(host));
}

void LossNormalizer::Forward(const Device& device, const float* loss, LossAccumulators* head,
                             float* out, const float* weight) {
  ReduceSum(device, rows_, RowLoss{loss}, 1, &head->sum);
  ReduceSum(device, has_ignore_ ? rows_ : 0, IsIgnored{loss}, 1, &head->ignored);
  const bool weighted = weight != nullptr;
  if (weighted) ReduceSum(device, rows_, RowWeight{weight}, 1, &head->weight);
  const auto replicas = static_cast<float>(replicas_.count);
  const float fixed = FixedDivisor(replicas);
  const bool counts_differ = fixed == 0 && (has_ignore_ || weighted);
  if (counts_differ && replicas_.count > 1) SumCounts(device, weighted, head);
  ForEach(device, 1,
          DivideTotal{head, out, fixed, static_cast<float>(rows_) * replicas, weighted, replicas});
  if (passes_ > 1) AddPassCount(device, weighted, head);
}

}  // namespace trainer

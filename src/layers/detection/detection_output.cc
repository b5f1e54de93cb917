#include <glog/logging.h>

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "detection/decode_box.h"
#include "shared/checks.h"
#include "trainer/backend/loops/parallel_for.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr char kDetectionOutputParam[] = "detection_output_param";
constexpr int64_t kRow = 7;  // item, class, score, xmin, ymin, xmax, ymax

// A box that was found in an item.
struct Found {
  float score;
  int32_t label;
  int64_t prior;

  // Orders detections by falling score; equal scores by class, then by prior, so that the order
  // does not depend on the sort.
  bool IsMoreConfident(const Found& other) const {
    if (score != other.score) return score > other.score;
    return label != other.label ? label < other.label : prior < other.prior;
  }
};

// Throws kConfig for a missing or invalid field of detection_output_param.
void CheckDetectionFields(const LayerSpec& spec) {
  const caffe::DetectionOutputParameter& param = spec.proto().detection_output_param();
  if (!param.has_num_classes()) {
    spec.Fail("num_classes is not given; give the number of classes including the background");
  }
  if (param.num_classes() < 1 || param.num_classes() > INT32_MAX) {
    spec.FailIn(
        kDetectionOutputParam, "num_classes",
        Join("num_classes is ", param.num_classes(), "; it must be at least 1 and below 2^31"));
  }
  if (std::isnan(param.confidence_threshold())) {
    spec.FailIn(kDetectionOutputParam, "confidence_threshold",
                "confidence_threshold is not a number");
  }
  const float threshold = param.nms_param().nms_threshold(), eta = param.nms_param().eta();
  if (!(threshold >= 0)) {
    spec.FailIn(kDetectionOutputParam, "nms_param",
                Join("nms_threshold is ", threshold, "; it must not be negative"));
  }
  if (!(eta > 0 && eta <= 1)) {
    spec.FailIn(kDetectionOutputParam, "nms_param",
                Join("eta is ", eta, "; it must be above 0 and at most 1"));
  }
}

// Logs a warning for each field of Caffe's layer that has no effect here.
void WarnOfIgnoredFields(const LayerSpec& spec) {
  const caffe::DetectionOutputParameter& param = spec.proto().detection_output_param();
  const auto note = [&](const char* field, const char* text) {
    LOG(WARNING) << EscapeControl(Join(spec.WhereIn(kDetectionOutputParam, field).ToString(),
                                       ": layer '", spec.name(), "' (", spec.type(), "): ", field,
                                       text));
  };
  if (!param.save_output_param().output_directory().empty()) {
    note(
        "save_output_param",
        " has no effect: this program writes no detection files; read the detections from the top");
  }
  if (param.visualize()) note("visualize", " has no effect: this program shows no images");
}

// Decodes predicted boxes and keeps the best after non-maximum suppression, as in SSD
// (arXiv:1512.02325). Forward works on the host and resizes its output to the number of detections.
class DetectionOutput final : public Layer {
 public:
  explicit DetectionOutput(const LayerSpec& spec) : spec_(spec) {
    CheckDetectionFields(spec);
    WarnOfIgnoredFields(spec);
    const caffe::DetectionOutputParameter& param = spec.proto().detection_output_param();
    classes_ = param.num_classes();
    coding_ = {param.code_type(), !param.variance_encoded_in_target()};
    background_ = param.background_label_id();
    least_ = param.has_confidence_threshold() ? param.confidence_threshold() : -FLT_MAX;
    top_k_ = param.nms_param().has_top_k() ? param.nms_param().top_k() : -1;
    keep_ = param.keep_top_k();
  }

  void Setup(SetupContext& ctx) override {
    ctx.RunsOnHost();
    RequireF32(ctx, spec_);
    CheckInputs(ctx);
    for (int i = 0; i < ctx.NumInputs(); ++i) ctx.NotDifferentiable(i);
    items_ = ctx.Input(0)[0];
    // Each class of an item gives at most one box per prior.
    int64_t most = classes_ * (top_k_ < 0 ? priors_ : std::min(top_k_, priors_));
    if (keep_ >= 0) most = std::min(most, keep_);
    ctx.Output(0, {1, 1, items_ * std::max<int64_t>(1, most), kRow});
    ctx.OutputIsDynamic(0);
    ctx.OutputKeepsF32(0);
    location_.resize(static_cast<size_t>(ctx.Input(0).Count()));
    score_.resize(static_cast<size_t>(ctx.Input(1).Count()));
    prior_.resize(static_cast<size_t>(ctx.Input(2).Count()));
    chosen_.resize(score_.size());
    count_.resize(static_cast<size_t>(items_ * classes_));
    found_.reserve(static_cast<size_t>(classes_ * priors_));
    rows_.reserve(static_cast<size_t>(items_ * std::max<int64_t>(1, most) * kRow));
  }

  void Forward(const RunContext& run) override {
    const Device& device = run.device();
    device.CopyToHost(location_.data(), run.Input(0).data, run.Input(0).Bytes());
    device.CopyToHost(score_.data(), run.Input(1).data, run.Input(1).Bytes());
    device.CopyToHost(prior_.data(), run.Input(2).data, run.Input(2).Bytes());
    DecodeAll();
    ParallelRanges(items_ * classes_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task)
        SuppressOverlaps(task / classes_, task % classes_);
    });
    rows_.clear();
    for (int64_t item = 0; item < items_; ++item) AppendItem(item);
    if (rows_.empty()) AppendEmptyRows();
    run.Resize(0, {1, 1, static_cast<int64_t>(rows_.size()) / kRow, kRow});
    device.CopyToDevice(run.Output(0).data, rows_.data(), rows_.size() * sizeof(float));
  }

 private:
  // Throws kConfig unless the shapes of locations, scores and priors agree. Sets priors_ and
  // box_classes_.
  void CheckInputs(const SetupContext& ctx) {
    const Shape &location = ctx.Input(0), &score = ctx.Input(1), &prior = ctx.Input(2);
    if (prior.Rank() != 3 || prior[0] != 1 || prior[1] != 2 || prior[2] % 4 != 0) {
      spec_.Fail(
          "bottom",
          Join("bottom '", spec_.proto().bottom(2), "' has shape ", Dims(prior),
               "; the third bottom must have the boxes of PriorBox layers, (1, 2, boxes * 4)"),
          2);
    }
    priors_ = prior[2] / 4;
    box_classes_ = spec_.proto().detection_output_param().share_location() ? 1 : classes_;
    RequireRow(ctx, 0, 4 * box_classes_, box_classes_ == 1 ? "4 per box" : "4 per box and class");
    RequireRow(ctx, 1, classes_, "num_classes per box");
    if (location[0] != score[0]) {
      spec_.Fail("bottom",
                 Join("bottom '", spec_.proto().bottom(1), "' has ", score[0],
                      " items and bottom '", spec_.proto().bottom(0), "' has ", location[0]),
                 1);
    }
  }

  // Refuses input i unless it has `each` numbers per prior and item, in one row.
  void RequireRow(const SetupContext& ctx, int i, int64_t each, const char* what) const {
    const Shape& shape = ctx.Input(i);
    const bool row = shape.Rank() >= 2 && shape.Count(2) == 1;
    if (row && shape[1] % each == 0 && shape[1] / each == priors_) return;
    spec_.Fail("bottom",
               Join("bottom '", spec_.proto().bottom(i), "' has shape ", Dims(shape), "; for the ",
                    priors_, " boxes of bottom '", spec_.proto().bottom(2), "' it must be (N, ",
                    priors_, " * ", each, "): ", what),
               i);
  }

  // Returns the decoded corners of a box. With share_location, all classes share it.
  const float* Box(int64_t item, int64_t label, int64_t prior) const {
    const int64_t c = box_classes_ == 1 ? 0 : label;
    return location_.data() + ((item * priors_ + prior) * box_classes_ + c) * 4;
  }
  float Score(int64_t item, int64_t label, int64_t prior) const {
    return score_[static_cast<size_t>((item * priors_ + prior) * classes_ + label)];
  }

  // Converts locations to boxes, in place.
  void DecodeAll() {
    float* const boxes = location_.data();
    const float* const prior = prior_.data();
    const int64_t of_prior = box_classes_, priors = priors_;
    const BoxCoding coding = coding_;
    ParallelFor(
        items_ * priors_ * box_classes_,
        [=](int64_t i) {
          const int64_t at = i / of_prior % priors * 4;
          coding.Decode(prior + at, prior + priors * 4 + at, boxes + i * 4);
        },
        1024);
  }

  // Non-maximum suppression for one class of one item: of the top_k boxes above the threshold, the
  // most confident first, keeps the ones that overlap no kept box by more than nms_threshold.
  // Writes them to chosen_ and their number to count_; none for the background.
  void SuppressOverlaps(int64_t item, int64_t label) {
    int64_t& count = count_[static_cast<size_t>(item * classes_ + label)];
    count = 0;
    if (label == background_) return;
    int64_t* const chosen = chosen_.data() + (item * classes_ + label) * priors_;
    int64_t candidates = 0;
    for (int64_t p = 0; p < priors_; ++p) {
      if (Score(item, label, p) > least_) chosen[candidates++] = p;
    }
    const auto surer = [&](int64_t a, int64_t b) {
      const float left = Score(item, label, a), right = Score(item, label, b);
      return left != right ? left > right : a < b;
    };
    const int64_t looked_at = top_k_ < 0 ? candidates : std::min(top_k_, candidates);
    std::partial_sort(chosen, chosen + looked_at, chosen + candidates, surer);
    const caffe::NonMaximumSuppressionParameter& nms =
        spec_.proto().detection_output_param().nms_param();
    float threshold = nms.nms_threshold();
    for (int64_t i = 0; i < looked_at; ++i) {
      const float* const box = Box(item, label, chosen[i]);
      const bool stays = std::all_of(chosen, chosen + count, [&](int64_t other) {
        return Overlap(box, Box(item, label, other)) <= threshold;
      });
      if (!stays) continue;
      chosen[count++] = chosen[i];
      if (nms.eta() < 1 && threshold > 0.5f) threshold *= nms.eta();
    }
  }

  // Appends the rows of an item's detections, sorted by class and falling score. If there are more
  // than keep_top_k, the ones with the lowest scores are dropped.
  void AppendItem(int64_t item) {
    found_.clear();
    for (int64_t label = 0; label < classes_; ++label) {
      const int64_t task = item * classes_ + label;
      for (int64_t i = 0; i < count_[static_cast<size_t>(task)]; ++i) {
        const int64_t prior = chosen_[static_cast<size_t>(task * priors_ + i)];
        found_.push_back({Score(item, label, prior), static_cast<int32_t>(label), prior});
      }
    }
    if (keep_ >= 0 && static_cast<int64_t>(found_.size()) > keep_) {
      const auto surer = [](const Found& a, const Found& b) { return a.IsMoreConfident(b); };
      std::partial_sort(found_.begin(), found_.begin() + keep_, found_.end(), surer);
      found_.resize(static_cast<size_t>(keep_));
      std::sort(found_.begin(), found_.end(), [](const Found& a, const Found& b) {
        return a.label != b.label ? a.label < b.label : a.IsMoreConfident(b);
      });
    }
    for (const Found& found : found_) {
      const float* const box = Box(item, found.label, found.prior);
      for (const float value : {static_cast<float>(item), static_cast<float>(found.label),
                                found.score, box[0], box[1], box[2], box[3]}) {
        rows_.push_back(value);
      }
    }
  }

  // Appends Caffe's result for no detections: one row per item, with the item's number and -1.
  void AppendEmptyRows() {
    for (int64_t item = 0; item < items_; ++item) {
      rows_.push_back(static_cast<float>(item));
      rows_.insert(rows_.end(), kRow - 1, -1.0f);
    }
  }

  LayerSpec spec_;
  BoxCoding coding_;
  int64_t classes_ = 0, background_ = 0, top_k_ = -1, keep_ = -1;
  float least_ = 0;
  int64_t items_ = 0, priors_ = 0, box_classes_ = 1;
  // Buffers on the host, sized in Setup: the inputs (location_ then holds the decoded boxes); for
  // each item and class, the chosen priors and their number; the boxes found in an item; the
  // output.
  std::vector<float> location_, score_, prior_;
  std::vector<int64_t> chosen_, count_;
  std::vector<Found> found_;
  std::vector<float> rows_;
};

const RegisterLayer<DetectionOutput> kDetectionOutput(
    "DetectionOutput",
    {.text =
         "Detections: the predicted boxes that remain after non-maximum suppression (SSD).\n"
         "bottoms: locations (N, boxes * 4), or (N, boxes * num_classes * 4) with share_location: "
         "false; scores (N, boxes * num_classes); the boxes of PriorBox layers (1, 2, boxes * 4); "
         "a fourth bottom (the images) is ignored. top (1, 1, K, 7); K can differ in each pass. A "
         "row is (item, class, score, xmin, ymin, xmax, ymax), with coordinates in shares of the "
         "image's sides. Rows are sorted by item, class and falling score. For each class except "
         "background_label_id, the layer takes the nms_param.top_k boxes with the highest scores "
         "above confidence_threshold, in the order of their scores. It keeps a box if its overlap "
         "with each kept box is at most nms_threshold. Then it keeps the best keep_top_k boxes of "
         "each item. If no item has a box, K is N and each row has the item and -1. No gradient. "
         "save_output_param and visualize have no effect.",
     .param = kDetectionOutputParam,
     .arity = {.min_in = 3, .max_in = 4}});

}  // namespace
}  // namespace trainer

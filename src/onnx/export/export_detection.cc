// Exports DetectionOutput.

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>

#include "export/layer_export.h"

namespace trainer {
namespace {

constexpr float kNoScore = -std::numeric_limits<float>::infinity();

// Holds the layer's fields and sizes.
struct DetectionFields {
  int64_t priors = 0, classes = 0, box_classes = 1, background = 0;
  int64_t top_k = -1, keep = -1;
  float threshold = -FLT_MAX, overlap = 0.3f;
};

DetectionFields ReadDetectionFields(const LayerExport& layer) {
  const caffe::DetectionOutputParameter& p = layer.proto().detection_output_param();
  if (p.nms_param().eta() != 1) {
    layer.RefuseIn("detection_output_param", "nms_param",
                   "eta changes the overlap that is allowed, which NonMaxSuppression cannot do; "
                   "remove it");
  }
  DetectionFields f;
  f.priors = layer.InShape(2)[2] / 4;
  f.classes = p.num_classes();
  f.box_classes = p.share_location() ? 1 : f.classes;
  f.background = p.background_label_id();
  f.top_k = p.nms_param().has_top_k() ? p.nms_param().top_k() : -1;
  f.keep = p.keep_top_k();
  if (p.has_confidence_threshold()) f.threshold = std::max(p.confidence_threshold(), -FLT_MAX);
  f.overlap = std::min(p.nms_param().nms_threshold(), 1.0f);
  return f;
}

// Returns the decoded boxes (N, priors, 4), or (N, priors, classes, 4) if each class has its own.
std::string AddDecodedBoxes(const LayerExport& layer, const DetectionFields& f) {
  const caffe::DetectionOutputParameter& p = layer.proto().detection_output_param();
  GraphWriter& graph = layer.graph();
  const bool shared = f.box_classes == 1;
  std::vector<int64_t> dims = {0, f.priors, 4};
  if (!shared) dims = {0, f.priors, f.classes, 4};
  std::string move = graph.Reshape(layer.In(0), dims);
  std::vector<int64_t> prior_dims = {2, f.priors, 4};
  if (!shared) prior_dims = {2, f.priors, 1, 4};
  const GraphWriter::Names halves = graph.Split(graph.Reshape(layer.In(2), prior_dims), 0, {1, 1});
  if (!p.variance_encoded_in_target()) move = graph.Add("Mul", {move, halves[1]});
  const std::string& prior = halves[0];  // (1, priors, 4)
  if (p.code_type() == caffe::PriorBoxParameter::CORNER) return graph.Add("Add", {prior, move});
  const int64_t last = shared ? 2 : 3;
  const GraphWriter::Names ends = graph.Split(prior, last, {2, 2});
  const std::string size = graph.Add("Sub", {ends[1], ends[0]});
  if (p.code_type() == caffe::PriorBoxParameter::CORNER_SIZE) {
    const std::string sizes = graph.Add("Concat", {size, size}, {{"axis", last}});
    return graph.Add("Add", {prior, graph.Add("Mul", {move, sizes})});
  }
  const GraphWriter::Names moves = graph.Split(move, last, {2, 2});
  const std::string middle = graph.Line(graph.Add("Add", {ends[0], ends[1]}), 0.5f, 0);
  const std::string center = graph.Add("Add", {graph.Add("Mul", {moves[0], size}), middle});
  const std::string half =
      graph.Line(graph.Add("Mul", {graph.Add("Exp", {moves[1]}), size}), 0.5f, 0);
  return graph.Add("Concat", {graph.Add("Sub", {center, half}), graph.Add("Add", {center, half})},
                   {{"axis", last}});
}

// Returns the scores (N, classes, priors). Background scores, and scores below the top_k of their
// class, become minus infinity.
std::string AddCandidateScores(const LayerExport& layer, const DetectionFields& f) {
  GraphWriter& graph = layer.graph();
  const std::string none = graph.Float(kNoScore);
  std::string scores =
      graph.Transpose(graph.Reshape(layer.In(1), {0, f.priors, f.classes}), {0, 2, 1});
  if (f.background >= 0 && f.background < f.classes) {
    std::vector<bool> is_background(static_cast<size_t>(f.classes), false);
    is_background[static_cast<size_t>(f.background)] = true;
    scores = graph.Add("Where", {graph.Bools(is_background, {1, f.classes, 1}), none, scores});
  }
  if (f.top_k < 0 || f.top_k >= f.priors) return scores;
  if (f.top_k == 0) return graph.Add("Add", {scores, none});
  const GraphWriter::Names top =
      graph.AddMany("TopK", {scores, graph.Ints({f.top_k})}, 2, {{"axis", 2}});
  const std::string least = graph.Slice(top[0], 2, f.top_k - 1, f.top_k);
  return graph.Add("Where", {graph.Add("GreaterOrEqual", {scores, least}), scores, none});
}

// Returns the boxes for the suppression. In Caffe, a box whose end is before its start overlaps no
// other box, but NonMaxSuppression swaps the two ends, so this moves the end to the start. The code
// type CENTER_SIZE never gives such boxes.
std::string AddOrderedBoxes(const LayerExport& layer, const DetectionFields& f,
                            const std::string& boxes) {
  const caffe::DetectionOutputParameter& p = layer.proto().detection_output_param();
  if (p.code_type() == caffe::PriorBoxParameter::CENTER_SIZE) return boxes;
  GraphWriter& graph = layer.graph();
  const int64_t last = f.box_classes == 1 ? 2 : 3;
  const GraphWriter::Names ends = graph.Split(boxes, last, {2, 2});
  return graph.Add("Concat", {ends[0], graph.Add("Max", ends)}, {{"axis", last}});
}

// Holds columns (K, 1) of integers with one row per detection: the item, and class * priors +
// prior.
struct Detections {
  std::string item, place;
};

// Returns the detections that remain after non-maximum suppression.
Detections AddSuppression(const LayerExport& layer, const DetectionFields& f,
                          const std::string& boxes, const std::string& scores) {
  GraphWriter& graph = layer.graph();
  const bool shared = f.box_classes == 1;
  std::string of_boxes = AddOrderedBoxes(layer, f, boxes), of_scores = scores;
  if (!shared) {  // each class of each item is an item of its own
    of_boxes = graph.Reshape(graph.Transpose(of_boxes, {0, 2, 1, 3}), {-1, f.priors, 4});
    of_scores = graph.Reshape(scores, {-1, 1, f.priors});
  }
  const std::string chosen =
      graph.Add("NonMaxSuppression",
                {of_boxes, of_scores, graph.Ints({f.priors}), graph.Floats({&f.overlap, 1}, {1}),
                 graph.Floats({&f.threshold, 1}, {1})});
  const GraphWriter::Names columns = graph.Split(chosen, 1, {1, 1, 1});
  std::string item = columns[0], label = columns[1];
  if (!shared) {
    const std::string classes = graph.Int(f.classes);
    label = graph.Add("Mod", {columns[0], classes});
    item = graph.Add("Div", {columns[0], classes});
  }
  const std::string first = graph.Add("Mul", {label, graph.Int(f.priors)});
  return {item, graph.Add("Add", {first, columns[2]})};
}

// Returns the indices of the items as a column (N, 1).
std::string AddItemNumbers(const LayerExport& layer) {
  GraphWriter& graph = layer.graph();
  const std::string count = graph.Squeeze(layer.Length(layer.In(1), layer.InShape(1), 0), {0});
  return graph.Unsqueeze(graph.Add("Range", {graph.Int(0), count, graph.Int(1)}), {1});
}

// Keeps the keep_top_k detections of each item with the highest scores, sorted by class and falling
// score. TopK keeps the order of equal values, so sorting by class keeps the order by score.
Detections AddKeptTop(const LayerExport& layer, const DetectionFields& f, const Detections& found,
                      const std::string& flat_scores) {
  GraphWriter& graph = layer.graph();
  const int64_t keep = std::min(f.keep, f.classes * f.priors);
  const std::string at = graph.Add("Concat", {found.item, found.place}, {{"axis", 1}});
  const std::string shape = graph.Add("Shape", {flat_scores});
  const std::string none = graph.Add("Expand", {graph.Float(kNoScore), shape});
  const std::string sparse =
      graph.Add("ScatterND", {none, at, graph.Add("GatherND", {flat_scores, at})});
  const GraphWriter::Names best =
      graph.AddMany("TopK", {sparse, graph.Ints({keep})}, 2, {{"axis", 1}});
  const std::string label = graph.Add("Div", {best[1], graph.Int(f.priors)});
  const std::string key = graph.Cast(graph.Add("Neg", {label}), onnx::TensorProto::FLOAT);
  const GraphWriter::Names sorted =
      graph.AddMany("TopK", {key, graph.Ints({keep})}, 2, {{"axis", 1}});
  const std::string score = graph.Add("GatherElements", {best[0], sorted[1]}, {{"axis", 1}});
  const std::string place = graph.Add("GatherElements", {best[1], sorted[1]}, {{"axis", 1}});
  const std::string is_found = graph.Add("Greater", {score, graph.Float(-FLT_MAX)});
  const std::string item =
      graph.Add("Expand", {AddItemNumbers(layer), graph.Add("Shape", {place})});
  const auto pick = [&](const std::string& x) {
    return graph.Add("Compress", {graph.Reshape(x, {-1, 1}), graph.Reshape(is_found, {-1})},
                     {{"axis", 0}});
  };
  return {pick(item), pick(place)};
}

// Returns one row (item, -1, -1, -1, -1, -1, -1) per item if `rows` is empty, because Caffe writes
// these if nothing was detected. Returns no rows otherwise.
std::string AddEmptyRows(const LayerExport& layer, const std::string& rows) {
  GraphWriter& graph = layer.graph();
  const std::string item = graph.Cast(AddItemNumbers(layer), onnx::TensorProto::FLOAT);
  const std::string padded = graph.Add("Pad", {item, graph.Ints({0, 0, 0, 6}), graph.Float(-1)});
  const std::string found = graph.Slice(graph.Add("Shape", {rows}), 0, 0, 1);
  const std::string all = layer.Length(layer.In(1), layer.InShape(1), 0);
  const std::string is_empty = graph.Add("Equal", {found, graph.Ints({0})});
  const std::string end = graph.Add("Where", {is_empty, all, graph.Ints({0})});
  return graph.Add("Slice", {padded, graph.Ints({0}), end, graph.Ints({0})});
}

void ExportDetectionOutput(const LayerExport& layer) {
  GraphWriter& graph = layer.graph();
  const DetectionFields f = ReadDetectionFields(layer);
  const std::string boxes = AddDecodedBoxes(layer, f);
  const std::string scores = AddCandidateScores(layer, f);
  const std::string flat_scores = graph.Add("Flatten", {scores}, {{"axis", 1}});
  Detections found = AddSuppression(layer, f, boxes, scores);
  if (f.keep >= 0) found = AddKeptTop(layer, f, found, flat_scores);
  const std::string label = graph.Add("Div", {found.place, graph.Int(f.priors)});
  const std::string prior = graph.Add("Mod", {found.place, graph.Int(f.priors)});
  const std::string score = graph.Add(
      "GatherND", {flat_scores, graph.Add("Concat", {found.item, found.place}, {{"axis", 1}})});
  GraphWriter::Names at = {found.item, prior};
  if (f.box_classes > 1) at.push_back(label);
  const std::string box = graph.Add("GatherND", {boxes, graph.Add("Concat", at, {{"axis", 1}})});
  const std::string rows =
      graph.Add("Concat",
                {graph.Cast(found.item, onnx::TensorProto::FLOAT),
                 graph.Cast(label, onnx::TensorProto::FLOAT), graph.Unsqueeze(score, {1}), box},
                {{"axis", 1}});
  const std::string all = graph.Add("Concat", {rows, AddEmptyRows(layer, rows)}, {{"axis", 0}});
  layer.Set(0, graph.Reshape(all, {1, 1, -1, 7}));
}

const RegisterExport kExportDetectionOutput({"DetectionOutput"}, {ExportDetectionOutput});

}  // namespace
}  // namespace trainer

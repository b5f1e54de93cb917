#include "trainer/inference/evaluate/evaluation.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "evaluate/confusion_report.h"
#include "evaluate/metric_report.h"
#include "evaluate/record_comparison.h"
#include "evaluate/score_selector.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/log/progress.h"
#include "trainer/base/text/base64.h"
#include "trainer/base/text/text.h"
#include "trainer/image/image_grid.h"
#include "trainer/inference/predict/class_names.h"
#include "trainer/metrics/label_consumers.h"
#include "trainer/metrics/predictions.h"
#include "trainer/monitor/run_directory.h"
#include "trainer/net/data_layers.h"

namespace trainer {
namespace {

constexpr int kDefaultBatches = 50;  // of endless data, as Caffe's program

// Warns of a net without data, whose outputs are numbers without meaning.
void WarnOfEmptyInputs(const Net& net) {
  std::vector<std::string> zeros;
  for (const Node& node : net.graph().nodes) {
    const caffe::LayerParameter& layer = node.spec.proto();
    const bool zero = layer.type() == "Input" || (layer.type() == "DummyData" &&
                                                  layer.dummy_data_param().data_filler_size() == 0);
    if (zero) zeros.insert(zeros.end(), layer.top().begin(), layer.top().end());
  }
  if (zeros.empty()) return;
  LOG(WARNING) << EscapeControl(
      Join("no data fills ", JoinList(zeros),
           ": the input is all zeros, so the outputs are meaningless. Give the net with its data "
           "layers; for a deploy net use 'trainer predict' with images"));
}

// Returns whether ScoreSelector finds scores by itself.
bool HasClassLayer(const Net& net) {
  return std::ranges::any_of(FindLabelConsumers(net.graph()), [&](const LabelConsumer& one) {
    const std::string& type = net.graph().nodes[NodeId(one.layer)].spec.type();
    return type == "Accuracy" || type == "SoftmaxWithLoss";
  });
}

// Returns the records that the test reads; 0 if their number is unknown.
int64_t RecordsOf(const TestNets& nets) {
  return nets.batches() * nets.batch_records() + nets.rest_records();
}

// Logs whether this test reads each record of the data once, and warns if it reads another number
// of records than the tests of the run did.
void LogCoverage(const TestNets& nets, const EvaluationOptions& options) {
  const TestData& data = nets.data();
  if (options.iterations > 0) {
    const std::string misfit = MisfitOfTest(data, options.iterations, "--iterations");
    if (!misfit.empty()) LOG(WARNING) << EscapeControl(misfit);
  } else if (data.records > 0 && RecordsOf(nets) == data.records) {
    LOG(INFO) << EscapeControl(
        Join("One pass over the ", data.records, " records of layer '", data.layer, "'"));
  }
  if (data.batch < 1) return;
  const int64_t own = options.solver_test_iter * data.batch;
  if (own == 0 || own == RecordsOf(nets)) return;
  LOG(WARNING) << "the tests during the run read " << own << " records (test_iter "
               << options.solver_test_iter << ", batches of " << data.batch
               << "), so their results differ from this test of " << RecordsOf(nets) << " records";
}

// Compares the scores and labels of each batch: fills the confusion matrix and keeps the images
// with the highest loss.
class ScoreComparison {
 public:
  ScoreComparison(TestNets& nets, const EvaluationOptions& options)
      : nets_(FindScores(nets, options)),
        matrix_(nets_[0].scores.NumClasses()),
        top_losses_(options.top_losses) {
    if (options.class_names.empty()) return;
    class_names_ = ReadClassNames(options.class_names, matrix_.classes());
  }

  // Adds the batch that was computed last, by the net of the smaller last batch if `is_rest`.
  void AddBatch(bool is_rest) {
    const auto& [net, scores, images] = nets_[is_rest ? 1 : 0];
    const ScoredBatch batch = scores.Batch();
    const std::vector<Prediction> predictions = ReadPredictions(net, batch, matrix_.classes());
    for (const Prediction& one : predictions) matrix_.Add(one.label, one.predicted);
    if (images) top_losses_.Add(net, *images, batch.labels.Count(), predictions);
  }

  // Moves the results out of this object, which is not usable after that.
  void MoveTo(Evaluation* evaluation) {
    evaluation->confusion = std::move(matrix_);
    evaluation->class_names = std::move(class_names_);
    evaluation->top_losses = top_losses_.images();
  }

 private:
  // One of the nets of a test, with its scores and images.
  struct ComparedNet {
    const Net& net;
    ScoreSelector scores;
    std::optional<Tensor> images;  // none if the net reads no images
  };

  // Selects scores, labels and images in both nets of a test. The second exists only if the last
  // batch is smaller.
  static std::vector<ComparedNet> FindScores(TestNets& nets, const EvaluationOptions& options) {
    std::vector<ComparedNet> compared;
    for (const Net* net : {&nets.net(), nets.rest()}) {
      if (net == nullptr) continue;
      ScoreSelector scores(*net, options.scores, options.label, options.file);
      std::optional<Tensor> images = FindImages(*net, scores.consumer());
      compared.push_back({*net, std::move(scores), std::move(images)});
    }
    return compared;
  }

  const std::vector<ComparedNet> nets_;  // of whole batches, and of a smaller last batch
  ConfusionMatrix matrix_;
  TopLosses top_losses_;
  std::vector<std::string> class_names_;
};

// Runs all batches of the test. If the last batch is smaller, each batch has the weight of its
// records; else all weigh the same. `comparison` and `records` may be null.
Evaluation RunTest(TestNets& nets, const EvaluationOptions& options, ScoreComparison* comparison,
                   RecordComparison* records) {
  Evaluation result;
  result.net = nets.net().graph().name;
  result.batches = nets.batches() + (nets.rest() == nullptr ? 0 : 1);
  result.records = RecordsOf(nets);
  LogCoverage(nets, options);
  LOG(INFO) << "Running for " << result.batches << " iterations.";
  OutputMeans means;
  double total_weight = 0;
  std::optional<Progress> progress(std::in_place, Join("Testing ", result.net), "batches",
                                   result.batches, Progress::InLog::kNothing);
  for (int batch = 0; batch < result.batches; ++batch) {
    const bool is_rest = batch == nets.batches();
    Net& net = is_rest ? *nets.rest() : nets.net();
    const double weight =
        nets.rest() == nullptr
            ? 1
            : static_cast<double>(is_rest ? nets.rest_records() : nets.batch_records());
    result.loss += net.Forward() * weight;
    total_weight += weight;
    ReduceBadRecords(net, nullptr);
    means.Add(net, weight, is_rest);
    if (comparison != nullptr) comparison->AddBatch(is_rest);
    if (records != nullptr) records->AddBatch(is_rest);
    progress->Add(1);
  }
  progress.reset();
  result.loss /= total_weight;
  result.outputs = means.means();
  LOG(INFO) << Join("Loss: ", static_cast<float>(result.loss));
  for (const std::string& line : ToLines(result.outputs)) LOG(INFO) << line;
  return result;
}

// Returns the content of worst.json.
Json TopLossesJson(const Evaluation& evaluation) {
  Json list = Json::Array();
  for (const TopLoss& one : evaluation.top_losses) {
    const Prediction& prediction = one.prediction;
    const Image image = MakeImageGrid(one.values, one.shape.dims());
    Json json = Json::Object()
                    .Set("record", one.record)
                    .Set("label", prediction.label)
                    .Set("answer", prediction.predicted)
                    .Set("loss", prediction.loss)
                    .Set("confidence", prediction.confidence)
                    .Set("png", Base64(EncodeImage(image, "png")));
    const std::vector<std::string>& names = evaluation.class_names;
    if (!names.empty()) {
      json.Set("label_name", names[static_cast<size_t>(prediction.label)])
          .Set("answer_name", names[static_cast<size_t>(prediction.predicted)]);
    }
    list.Push(std::move(json));
  }
  return Json::Object().Set("pictures", std::move(list));
}

}  // namespace

int ChooseTestBatches(const NetSpec& spec, const caffe::NetState& state, int iterations) {
  if (iterations != kExactPass) return iterations;
  const std::vector<LayerSpec> layers = FilterLayers(spec, state);
  const bool reads_records = std::ranges::any_of(layers, [](const LayerSpec& layer) {
    const std::string& type = layer.type();
    return type == "Data" || type == "ImageData" || type == "HDF5Data" || type == "MemoryData";
  });
  return reads_records ? kExactPass : kDefaultBatches;
}

Evaluation Evaluate(InferenceNet& net, const EvaluationOptions& options) {
  WarnOfEmptyInputs(net.net());
  std::optional<ScoreComparison> comparison;
  const bool has_classes = !options.confusion_may_lack || HasClassLayer(net.net());
  if (options.confusion && has_classes) comparison.emplace(net.test(), options);
  const std::unique_ptr<RecordComparison> records = RecordComparison::Make(net.test(), options);
  net.LoadWeights(options.weights);
  Evaluation result =
      RunTest(net.test(), options, comparison ? &*comparison : nullptr, records.get());
  if (comparison) comparison->MoveTo(&result);
  if (records != nullptr) records->MoveTo(&result);
  return result;
}

std::string ToText(const Evaluation& evaluation) {
  std::string text;
  if (evaluation.confusion) {
    text = ToText(*evaluation.confusion, evaluation.class_names);
  } else {
    for (const std::string& line : ToLines(evaluation.outputs)) text += EscapeControl(line) + "\n";
  }
  if (evaluation.metrics) text += "\n" + ToText(*evaluation.metrics, evaluation.class_names);
  return text;
}

Json ToJson(const Evaluation& evaluation) {
  Json json = Json::Object()
                  .Set("net", evaluation.net)
                  .Set("iterations", evaluation.batches)
                  .Set("records", evaluation.records)
                  .Set("loss", evaluation.loss)
                  .Set("outputs", ToJson(evaluation.outputs));
  if (evaluation.metrics) json.Set("metrics", ToJson(*evaluation.metrics));
  if (evaluation.confusion) {
    json.Set("confusion", ToJson(*evaluation.confusion, evaluation.class_names));
  }
  return json;
}

void WriteEvaluation(const std::string& folder, const Evaluation& evaluation) {
  std::vector<std::pair<const char*, Json>> files = {{kConfusionName, ToJson(evaluation)},
                                                     {kWorstName, TopLossesJson(evaluation)}};
  if (evaluation.metrics) {
    files.emplace_back(kCurvesName, CurvesJson(*evaluation.metrics, evaluation.class_names));
  }
  for (const auto& [name, json] : files) {
    const std::string path = JoinPath(folder, name);
    WriteWhole(path, json.ToString());
    LOG(INFO) << "Wrote " << EscapeControl(path);
  }
}

}  // namespace trainer

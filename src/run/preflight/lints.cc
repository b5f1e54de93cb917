#include "preflight/lints.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "trainer/base/error/error_collector.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/input/class_folders.h"
#include "trainer/input/input_files.h"
#include "trainer/solver/lr_schedule.h"

namespace trainer {
namespace {

// Returns whether the layer reads records and changes them by its transform_param.
bool TransformsRecords(const LayerSpec& layer) {
  const std::string& type = layer.type();
  return type == "Data" || type == "ImageData" || type == "WindowData" || type == "MemoryData";
}

// Returns the layers of a net that read records and transform them.
std::vector<LayerSpec> ReadersOf(const NetUse& use) {
  std::vector<LayerSpec> layers = FilterLayers(*use.net, use.state);
  std::erase_if(layers, [](const LayerSpec& layer) { return !TransformsRecords(layer); });
  return layers;
}

// Returns how the mean is given, for comparison and for messages.
std::string MeanText(const caffe::TransformationParameter& param) {
  if (param.has_mean_file()) return Join("mean_file '", EscapeControl(param.mean_file()), "'");
  std::vector<std::string> values;
  for (const float value : param.mean_value()) values.push_back(Join(value));
  return values.empty() ? "no mean" : Join("mean_value ", JoinList(values));
}

// Warns about a different scale or mean, and about a mirror in TEST alone. Scales that differ by up
// to 5 %, such as 1 / 255 and 1 / 256, count as equal.
void CompareTransforms(const LayerSpec& train, const LayerSpec& test, Diagnostics* diagnostics) {
  const caffe::TransformationParameter& a = train.proto().transform_param();
  const caffe::TransformationParameter& b = test.proto().transform_param();
  const auto warn = [&](const char* field, const std::string& in_train,
                        const std::string& in_test) {
    diagnostics->Warn(Join(
        test.WhereIn("transform_param", field).ToString(), ": ", test.Title(), " has ", in_test,
        " in TEST and ", in_train, " in TRAIN (",
        train.WhereIn("transform_param", field).ToString(),
        "): the tests see different input values than training; write the same value in both"));
  };
  const bool same_scale = std::abs(a.scale() - b.scale()) <= 0.05f * std::abs(a.scale());
  if (!same_scale) warn("scale", Join("scale ", a.scale()), Join("scale ", b.scale()));
  if (MeanText(a) != MeanText(b)) {
    warn(b.has_mean_file() ? "mean_file" : "mean_value", MeanText(a), MeanText(b));
  }
  if (b.mirror() && !a.mirror()) warn("mirror", "none", "mirror: true");
}

// Returns the classes of an ImageData layer whose source is a folder; else nothing.
std::vector<std::string> ClassFoldersOf(const LayerSpec& layer) {
  const std::optional<InputFiles> files = InputFilesOf(layer);
  if (!files || files->kind != InputFiles::Kind::kImageList || !IsDirectory(files->path)) return {};
  std::vector<std::string> names;
  ErrorCollector known;  // The layer reports them when it opens the folder.
  known.Try([&] { names = FindClassNames(files->path); });
  return names;
}

// Warns if the folders of two nets have other classes, so that equal labels mean other classes.
void CompareClassFolders(const LayerSpec& train, const LayerSpec& test, Diagnostics* diagnostics) {
  const std::vector<std::string> a = ClassFoldersOf(train), b = ClassFoldersOf(test);
  if (a.empty() || b.empty() || a == b) return;
  const auto at = static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
  const auto name = [&](const std::vector<std::string>& names) {
    return at < names.size() ? Join("'", EscapeControl(names[at]), "'") : "missing";
  };
  diagnostics->Warn(Join(test.WhereIn("image_data_param", "source").ToString(), ": class ", at,
                         " is ", name(b), " in TEST and ", name(a), " in TRAIN (",
                         train.WhereIn("image_data_param", "source").ToString(),
                         "), so labels mean different classes; give both folders the same "
                         "subfolders, of which some may be empty"));
}

// Compares layers with the same name, or the only data layer of each net.
void LintTransforms(const NetUse& train, const NetUse& test, Diagnostics* diagnostics) {
  const std::vector<LayerSpec> in_train = ReadersOf(train), in_test = ReadersOf(test);
  const bool single = in_train.size() == 1 && in_test.size() == 1;
  for (const LayerSpec& a : in_train) {
    for (const LayerSpec& b : in_test) {
      if (!single && a.name() != b.name()) continue;
      CompareTransforms(a, b, diagnostics);
      CompareClassFolders(a, b, diagnostics);
    }
  }
}

// Returns the learning rate above which the rule trains hardly any net; no value if the length of
// its steps does not follow from the learning rate.
std::optional<float> MostBearable(const caffe::SolverParameter& solver) {
  const std::string& type = solver.type();
  if (type == "Adam" || type == "AdamW" || type == "RMSProp") return 0.1f;
  if (type == "AdaGrad") return 1.0f;
  const bool bounded = solver.has_clip_gradients() || solver.has_clip_value() || solver.larc();
  if ((type == "SGD" || type == "Nesterov") && !bounded) return 10.0f;
  return std::nullopt;
}

// Warns if `most`, the highest learning rate of the run, is above MostBearable.
void LintLargestRate(const SolverSpec& spec, float most, Diagnostics* diagnostics) {
  const std::optional<float> bearable = MostBearable(spec.proto);
  if (!bearable || most <= *bearable) return;
  const std::string& type = spec.proto.type();
  const bool by_gradient = type == "SGD" || type == "Nesterov";
  diagnostics->Warn(
      Join(spec.Where("base_lr").ToString(), ": the learning rate is up to ", most, ", and ", type,
           by_gradient ? " diverges with nearly every net"
                       : " changes each weight by about the learning rate in every step, even if "
                         "its gradient is small, so the net does not learn with a learning rate",
           " above ", *bearable, "; usual values are ",
           by_gradient ? "0.001 to 0.1" : "0.0001 to 0.01", " ('trainer find-lr' measures it)"));
}

// Lints the labels of small data sets. `trainer check` reads large ones as well.
void LintSets(const NetUse& use, const Net& net, Diagnostics* diagnostics) {
  const AuditLimits limits = {.whole_bytes = 64 << 20,
                              .whole_encoded_bytes = 8 << 20,
                              .sample = 0,
                              .files = 2,
                              .pictures = 2};
  const std::vector<LabelReader> readers = LabelReadersOf(net.graph());
  for (const LayerSpec& layer : FilterLayers(*use.net, use.state)) {
    std::vector<int> tops;
    for (const LabelReader& reader : readers) {
      if (reader.data_layer == layer.name()) tops.push_back(reader.use.source_top);
    }
    if (tops.empty()) continue;
    ErrorCollector known;  // The run reports them when it reads the data.
    DataAudit data;
    known.Try([&] { data = AuditData(layer, caffe::TRAIN, tops, limits); });
    for (const LabelReader& reader : readers) {
      if (reader.data_layer == layer.name()) LintLabels(data, reader, diagnostics);
    }
  }
}

// Warns about an unfreeze_at that has no effect.
void LintUnfreezing(const SolverSpec& spec, Diagnostics* diagnostics) {
  const int at = spec.proto.unfreeze_at();
  if (at == 0 || spec.train.net == nullptr) return;
  const std::string what = Join(spec.Where("unfreeze_at").ToString(), ": unfreeze_at ", at);
  const auto is_frozen = [](const LayerSpec& layer) { return layer.proto().freeze(); };
  if (std::ranges::none_of(FilterLayers(*spec.train.net, spec.train.state), is_frozen)) {
    diagnostics->Warn(Join(what,
                           " has no effect, because no layer of the training net is frozen; write "
                           "freeze: true in layers, or give --freeze"));
  } else if (at >= spec.proto.max_iter()) {
    diagnostics->Warn(Join(what, " is never reached, because max_iter is ", spec.proto.max_iter()));
  }
}

// Returns how many steps a policy multistep or plateau has taken at `iter`. For plateau it assumes
// that the loss never falls: the first window then begins at the end of the warm-up.
int MostSteps(const caffe::SolverParameter& proto, int iter) {
  const bool plateau = proto.lr_policy() == "plateau";
  int steps = 0;
  int64_t at = std::max(proto.warmup_iter(), proto.rampup_interval());
  for (const int step : plateau ? proto.plateau_winsize() : proto.stepvalue()) {
    at = plateau ? at + step : step;
    steps += at <= iter ? 1 : 0;
  }
  return steps;
}

// Warns about lr_policy "plateau" that compares the losses of single batches.
void LintPlateau(const SolverSpec& spec, Diagnostics* diagnostics) {
  if (spec.proto.lr_policy() != "plateau" || spec.proto.average_loss() > 1) return;
  diagnostics->Warn(
      Join(spec.Where("lr_policy").ToString(),
           ": lr_policy 'plateau' compares the losses of single batches, because average_loss is "
           "1, so one easy batch delays the next step; set average_loss to about the iterations "
           "of an epoch"));
}

}  // namespace

RateRange LintRates(const SolverSpec& spec, Diagnostics* diagnostics) {
  const caffe::SolverParameter& proto = spec.proto;
  constexpr int kMostRates = 100000;
  const int step = std::max(1, proto.max_iter() / kMostRates);
  const auto rate_at = [&](int64_t at) {
    const auto iter = static_cast<int>(at);
    return LearningRate(proto, iter, MostSteps(proto, iter));
  };
  RateRange range{rate_at(0), rate_at(proto.max_iter() - 1), 0};
  for (int64_t iter = 0; iter < proto.max_iter(); iter += step) {
    const float rate = rate_at(iter);
    if (!std::isfinite(rate)) {
      diagnostics->Add(Error(ErrorCode::kDiverged, spec.Where("lr_policy"),
                             Join("the learning rate is ", rate, " in iteration ", iter,
                                  "; check gamma, power and the step values")));
      return {};
    }
    range.most = std::max(range.most, rate);
  }
  if (range.most == 0) {
    diagnostics->Warn(Join(spec.Where("base_lr").ToString(),
                           ": the learning rate is always 0, so nothing is learned; set base_lr"));
  }
  LintLargestRate(spec, range.most, diagnostics);
  for (int i = 0; i < proto.stepvalue_size(); ++i) {
    if (proto.stepvalue(i) < proto.max_iter()) continue;
    diagnostics->Warn(Join(spec.Where("stepvalue", i).ToString(), ": stepvalue ",
                           proto.stepvalue(i), " is never reached, because max_iter is ",
                           proto.max_iter()));
  }
  return range;
}

void LintSolver(const SolverSpec& spec, Diagnostics* diagnostics) {
  LintUnfreezing(spec, diagnostics);
  LintPlateau(spec, diagnostics);
  if (spec.train.net != nullptr) LintNet(spec.train, diagnostics);
  for (const NetUse& test : spec.tests) {
    if (test.net != nullptr) LintNet(test, diagnostics);
    if (spec.train.net != nullptr && test.net != nullptr) {
      LintTransforms(spec.train, test, diagnostics);
    }
  }
}

std::vector<LabelReader> LabelReadersOf(const Graph& graph) {
  std::vector<LabelReader> readers;
  for (const LabelConsumer& use : FindLabelConsumers(graph)) {
    if (use.source < 0) continue;
    const auto& nodes = graph.nodes;
    const LayerSpec &data = nodes[NodeId(use.source)].spec, &reader = nodes[NodeId(use.layer)].spec;
    const Shape labels = graph.Find(use.labels).shape;
    const int64_t per_record = labels.Rank() > 0 ? labels.Count(1) : 1;
    readers.push_back(
        {data.name(), reader.Title(), use, BalanceFieldsOf(reader, data), per_record});
  }
  return readers;
}

void LintLabels(const DataAudit& data, const LabelReader& reader, Diagnostics* diagnostics) {
  if (reader.labels_per_record > 1) return;
  if (data.sorted) {
    diagnostics->Warn(
        Join(data.source,
             ": the records are sorted by label and read in that order, so most batches "
             "have only one class; shuffle the records when you make the data set"));
  }
  const std::string imbalance = DescribeImbalance(data, reader.use, reader.balance);
  if (!imbalance.empty()) {
    diagnostics->Warn(Join(reader.balance.where.ToString(), ": ", reader.name, ": ", imbalance));
  }
  if (!data.all_labels || data.labels.empty()) return;
  std::set<int64_t> present;
  for (const auto& [label, seen] : data.labels) {
    if (reader.use.Takes(label)) present.insert(static_cast<int64_t>(label));
  }
  std::vector<std::string> missing;
  for (int64_t c = 0; c < reader.use.classes; ++c) {
    if (!present.contains(c)) missing.push_back(Join(c));
  }
  if (missing.empty()) return;
  diagnostics->Warn(Join(data.source, ": ", missing.size(), " of the ", reader.use.classes,
                         " classes of ", reader.name, " have no record: ", FirstNames(missing)));
}

void WarnBeforeTraining(const SolverSpec& spec, const Net& net) {
  Diagnostics diagnostics;
  LintRates(spec, &diagnostics);
  LintSolver(spec, &diagnostics);
  LintTrainingNet(net, &diagnostics);
  LintSets(spec.train, net, &diagnostics);
  for (const std::string& text : diagnostics.WarningTexts()) {
    LOG(WARNING) << EscapeControl(text);
  }
}

}  // namespace trainer

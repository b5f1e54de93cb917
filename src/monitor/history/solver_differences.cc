#include "solver_differences.h"

#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using google::protobuf::util::MessageDifferencer;

constexpr char kMissing[] = "none";  // an element of a repeated field

// Returns whether a field, by the last name of its path, has no effect on weights and tests.
bool IsHarmlessField(const std::string& path) {
  static const std::set<std::string> kHarmless = {"average_loss",
                                                  "cache",
                                                  "cache_images",
                                                  "debug_info",
                                                  "device_id",
                                                  "display",
                                                  "keep_best",
                                                  "keep_last",
                                                  "mean_file",
                                                  "parser_threads",
                                                  "precache",
                                                  "prefetch",
                                                  "snapshot",
                                                  "snapshot_after_train",
                                                  "snapshot_diff",
                                                  "snapshot_epoch",
                                                  "snapshot_every",
                                                  "snapshot_format",
                                                  "snapshot_prefix",
                                                  "source",
                                                  "test_initialization",
                                                  "threads",
                                                  "weights"};
  if (path == "random_seed") return true;  // of the solver; the card has the seed
  const size_t dot = path.rfind('.');
  std::string name = dot == std::string::npos ? path : path.substr(dot + 1);
  return kHarmless.contains(name.substr(0, name.find('[')));
}

// Appends a difference for each field that differs between two messages. `where` begins the name:
// "solver", "layer 'conv1'".
void CompareFields(const std::string& where, const google::protobuf::Message& a,
                   const google::protobuf::Message& b, std::vector<RunDifference>* differences) {
  std::string report;
  MessageDifferencer differencer;
  differencer.set_message_field_comparison(MessageDifferencer::EQUIVALENT);
  differencer.set_repeated_field_comparison(MessageDifferencer::AS_LIST);
  differencer.ReportDifferencesToString(&report);
  differencer.Compare(a, b);
  // Each line is "modified: path: old -> new", "added: path: new" or "deleted: path: old".
  std::istringstream lines(report);
  for (std::string line; std::getline(lines, line);) {
    const size_t path_at = line.find(": ");
    const size_t value_at = path_at == std::string::npos ? path_at : line.find(": ", path_at + 2);
    if (value_at == std::string::npos) continue;
    const std::string change = line.substr(0, path_at);
    const std::string path = line.substr(path_at + 2, value_at - path_at - 2);
    std::string text = line.substr(value_at + 2);
    if (change == "added") text = Join(kMissing, " -> ", text);
    if (change == "deleted") text = Join(text, " -> ", kMissing);
    differences->push_back(
        {IsHarmlessField(path) ? DifferenceKind::kHarmless : DifferenceKind::kAffects,
         Join(where, " ", path), text});
  }
}

// Returns " (TRAIN)" or " (TEST)" for a layer that its include rules allow in that phase only, else
// "".
std::string PhaseText(const caffe::LayerParameter& layer) {
  bool kept[] = {layer.include().empty(), layer.include().empty()};  // in TRAIN and in TEST
  for (const caffe::NetStateRule& rule : layer.include()) {
    for (const caffe::Phase phase : {caffe::TRAIN, caffe::TEST}) {
      kept[phase] = kept[phase] || !rule.has_phase() || rule.phase() == phase;
    }
  }
  if (kept[caffe::TRAIN] == kept[caffe::TEST]) return "";
  return kept[caffe::TRAIN] ? " (TRAIN)" : " (TEST)";
}

// Returns the layers by their names, such as "'data' (TRAIN)". The k-th layer with the same name in
// a phase is called "'data' (TRAIN) (2)".
std::map<std::string, const caffe::LayerParameter*> LayersByName(const caffe::NetParameter& net,
                                                                 std::vector<std::string>* order) {
  std::map<std::string, const caffe::LayerParameter*> layers;
  for (const caffe::LayerParameter& layer : net.layer()) {
    const std::string first = Join("'", layer.name(), "'", PhaseText(layer));
    std::string name = first;
    for (int k = 2; layers.contains(name); ++k) name = Join(first, " (", k, ")");
    layers[name] = &layer;
    order->push_back(name);
  }
  return layers;
}

// Removes the names that `others` lacks.
void KeepCommon(const std::map<std::string, const caffe::LayerParameter*>& others,
                std::vector<std::string>* names) {
  std::erase_if(*names, [&](const std::string& name) { return !others.contains(name); });
}

// Appends what differs between two nets. `where` is "net" or "test net 1".
void CompareNets(const std::string& where, caffe::NetParameter a, caffe::NetParameter b,
                 std::vector<RunDifference>* differences) {
  std::vector<std::string> order_a, order_b;
  const auto layers_a = LayersByName(a, &order_a), layers_b = LayersByName(b, &order_b);
  const auto describe = [](const caffe::LayerParameter& layer) {
    return Join("a layer of type ", layer.type());
  };
  for (const std::string& name : order_a) {
    const std::string what = Join(where, " layer ", name);
    const auto other = layers_b.find(name);
    if (other != layers_b.end()) {
      CompareFields(what, *layers_a.at(name), *other->second, differences);
    } else {
      differences->push_back(
          {DifferenceKind::kAffects, what, Join(describe(*layers_a.at(name)), " -> none")});
    }
  }
  for (const std::string& name : order_b) {
    if (layers_a.contains(name)) continue;
    differences->push_back({DifferenceKind::kAffects, Join(where, " layer ", name),
                            Join("none -> ", describe(*layers_b.at(name)))});
  }
  KeepCommon(layers_b, &order_a);
  KeepCommon(layers_a, &order_b);
  if (order_a != order_b) {
    const auto at = std::ranges::mismatch(order_a, order_b);
    differences->push_back({DifferenceKind::kAffects, Join(where, " order of the layers"),
                            Join(*at.in1, " -> ", *at.in2)});
  }
  a.clear_layer();
  b.clear_layer();
  CompareFields(where, a, b, differences);
}

// Returns the training net of a solver that contains it.
const caffe::NetParameter& NetIn(const caffe::SolverParameter& solver) {
  return solver.has_net_param() ? solver.net_param() : solver.train_net_param();
}

// Returns test net `i`, or an empty one.
caffe::NetParameter TestNetIn(const caffe::SolverParameter& solver, int i) {
  return i < solver.test_net_param_size() ? solver.test_net_param(i) : caffe::NetParameter();
}

}  // namespace

std::vector<RunDifference> CompareSolvers(const caffe::SolverParameter& a,
                                          const caffe::SolverParameter& b) {
  std::vector<RunDifference> differences;
  caffe::SolverParameter own_a = a, own_b = b;
  for (caffe::SolverParameter* solver : {&own_a, &own_b}) {
    solver->clear_net_param();
    solver->clear_train_net_param();
    solver->clear_test_net_param();
  }
  CompareFields("solver", own_a, own_b, &differences);
  const bool rate_follows_loss = a.lr_policy() == "plateau" || b.lr_policy() == "plateau";
  for (RunDifference& difference : differences) {
    if (rate_follows_loss && difference.what == "solver average_loss") {
      difference.kind = DifferenceKind::kAffects;
    }
  }
  CompareNets("net", NetIn(a), NetIn(b), &differences);
  for (int i = 0; i < std::max(a.test_net_param_size(), b.test_net_param_size()); ++i) {
    CompareNets(Join("test net ", i), TestNetIn(a, i), TestNetIn(b, i), &differences);
  }
  return differences;
}

}  // namespace trainer

#include "check_data.h"

#include <algorithm>

#include "trainer/base/text/text.h"

namespace trainer {
namespace {

int64_t DivideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Returns the number of iterations in which the net reads as many records as an epoch has.
int64_t IterationsPerEpoch(const PreflightNet& net, const DataAudit& data) {
  return DivideUp(data.EpochRecords(), data.batch_size * net.batches_per_iteration);
}

// Adds an error for each of the first few labels that the reader does not accept, and one with the
// number of the others. Returns whether the reader accepts all.
bool CheckLabels(const LayerAudit& audit, const LabelReader& reader, Diagnostics* diagnostics) {
  constexpr int kShown = 3;
  int bad = 0;
  for (const auto& [label, seen] : audit.data.labels) {
    if (reader.use.Takes(label) || ++bad > kShown) continue;
    diagnostics->Add(Error(ErrorCode::kData, {audit.data.source},
                           Join(seen.first, " has label ", label, ", but ", reader.name, " has ",
                                reader.use.classes, " classes, 0 to ", reader.use.classes - 1,
                                "; correct the labels, raise num_output of the layer that computes "
                                "the scores, or set ignore_label")));
  }
  if (bad > kShown) {
    diagnostics->Add(Error(ErrorCode::kData, {audit.data.source},
                           Join(bad - kShown, " more labels are out of range in ", reader.name)));
  }
  return bad == 0;
}

// Returns "60000 records, batches of 64: 938 iterations per epoch, 10.7 epochs in all", or for a
// test net "10000 records, batches of 100, a test reads 10000". With sampling: BALANCED it begins
// with "60000 records, 90000 in a balanced epoch".
std::string EpochText(const PreflightNet& net, const DataAudit& data) {
  if (data.records < 1 || data.batch_size < 1) return Join("batches of ", data.batch_size);
  std::string text =
      Join(data.estimated ? "about " : "", data.records, " records",
           data.balanced ? Join(", ", data.EpochRecords(), " in a balanced epoch") : std::string(),
           ", batches of ", data.batch_size);
  if (net.options.training) {
    text += Join(": ", IterationsPerEpoch(net, data), " iterations per epoch");
  }
  if (net.batches == 0)
    return net.options.training ? text : text + ", a test is one pass over all records";
  const int64_t read = net.batches * data.batch_size;
  const double epochs = static_cast<double>(read) / static_cast<double>(data.EpochRecords());
  return text + (net.options.training ? Join(", ", epochs, " epochs in all")
                                      : Join(", a test reads ", read));
}

// Returns the entry of one data layer in the list "data" of the report.
Json DataJson(const PreflightNet& net, const LayerAudit& audit) {
  const DataAudit& data = audit.data;
  Json json = Json::Object()
                  .Set("net", net.title)
                  .Set("layer", audit.layer)
                  .Set("source", data.source)
                  .Set("batch_size", data.batch_size)
                  .Set("records", data.records)
                  .Set("estimated", data.estimated)
                  .Set("examined", data.examined)
                  .Set("labels", data.labels.size())
                  .Set("errors", static_cast<int64_t>(data.errors.size()) + data.more_errors);
  if (data.balanced) json.Set("epoch_records", data.EpochRecords());
  if (net.options.training && data.records > 0 && data.batch_size > 0) {
    json.Set("iterations_per_epoch", IterationsPerEpoch(net, data));
  }
  return json;
}

// Audits the data layers (no bottoms, but tops) of the net with index `net`. Adds errors for files
// that cannot be opened; layers without files have no audit.
std::vector<LayerAudit> AuditLayers(const std::vector<PreflightNet>& nets, size_t net,
                                    const PlannedNet& plan, Diagnostics* diagnostics) {
  std::vector<LayerAudit> audits;
  for (const LayerSpec& layer : FilterLayers(*nets[net].spec, nets[net].options.state)) {
    if (layer.proto().bottom_size() > 0 || layer.proto().top_size() == 0) continue;
    LayerAudit audit{net, layer.name(), {}, {}};
    std::vector<int> label_tops;
    for (const LabelReader& reader : plan.readers) {
      if (reader.data_layer != layer.name()) continue;
      audit.readers.push_back(reader);
      label_tops.push_back(reader.use.source_top);
    }
    // Planning has reported them, but only the first of several missing files.
    ErrorCollector known;
    const bool opened =
        known.Try([&] { audit.data = AuditData(layer, layer.proto().phase(), label_tops); });
    if (!opened) diagnostics->Add(OpeningErrors(layer, layer.proto().phase()));
    if (opened && !audit.data.source.empty()) audits.push_back(std::move(audit));
  }
  return audits;
}

}  // namespace

std::vector<LayerAudit> AuditNets(const std::vector<PreflightNet>& nets, const PlannedNets& planned,
                                  Diagnostics* diagnostics) {
  std::vector<LayerAudit> all;
  for (size_t i = 0; i < nets.size(); ++i) {
    if (nets[i].spec == nullptr) continue;
    ErrorCollector known;  // errors of the rules, which planning has reported
    known.Try([&] {
      std::ranges::move(AuditLayers(nets, i, planned.nets[i], diagnostics),
                        std::back_inserter(all));
    });
  }
  return all;
}

std::set<size_t> ReportDataAudits(const std::vector<PreflightNet>& nets,
                                  const std::vector<LayerAudit>& audits, PreflightReport* report) {
  std::set<size_t> bad;
  Json list = Json::Array();
  for (const LayerAudit& audit : audits) {
    const PreflightNet& net = nets[audit.net];
    const DataAudit& data = audit.data;
    report->diagnostics.Add(data.errors);
    bool good = data.errors.empty();
    if (data.more_errors > 0) {
      report->diagnostics.Add(
          Error(ErrorCode::kData, {data.source}, Join(data.more_errors, " more records are bad")));
    }
    if (data.same_errors > 0) {
      report->lines.emplace_back(
          "data", Join(net.title, ": ", EscapeControl(data.source), ": ", data.same_errors,
                       " more records have the same error"));
    }
    for (const LabelReader& reader : audit.readers) {
      good = CheckLabels(audit, reader, &report->diagnostics) && good;
    }
    if (!good) bad.insert(audit.net);
    if (net.options.training) {
      for (const LabelReader& reader : audit.readers) {
        LintLabels(data, reader, &report->diagnostics);
      }
      if (data.records > 0 && data.batch_size > 0) {
        report->data = Join(data.estimated ? "about " : "", data.records, " records and ",
                            IterationsPerEpoch(net, data), " iterations per epoch");
      }
    }
    report->lines.emplace_back(
        "data", Join(net.title, ": ", EscapeControl(data.source), ", ", EpochText(net, data)));
    list.Push(DataJson(net, audit));
  }
  report->figures.Set("data", std::move(list));
  return bad;
}

}  // namespace trainer

#include "trainer/monitor/card_observer.h"

#include <glog/logging.h>

#include <algorithm>
#include <span>
#include <utility>

#include "trainer/base/error/error.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Returns the outputs by name, as the reader of metrics.jsonl returns them. The elements of an
// output with several are "prob[2]".
std::vector<std::pair<std::string, double>> NamedOutputs(std::span<const ReportedValue> outputs) {
  std::vector<std::pair<std::string, double>> named;
  for (size_t i = 0; i < outputs.size();) {
    size_t end = i + 1;
    while (end < outputs.size() && outputs[end].name == outputs[i].name) ++end;
    for (size_t j = i; j < end; ++j) {
      named.emplace_back(end == i + 1 ? outputs[j].name : Join(outputs[j].name, "[", j - i, "]"),
                         outputs[j].value);
    }
    i = end;
  }
  std::ranges::sort(named);
  return named;
}

bool IsSamePart(const EnergyTotal& a, const EnergyTotal& b) {
  return a.host == b.host && a.name == b.name;
}

}  // namespace

CardObserver::CardObserver(Options options) : options_(std::move(options)) {
  card_.starts.push_back(options_.start);
}

void CardObserver::OnStart(const RunStart& run) {
  begin_ = std::chrono::steady_clock::now();
  records_ = run.records;
  card_ = {};
  history_ = {};
  if (options_.resumes) ReadHistory();
  card_.state = "running";
  card_.net = run.net;
  card_.max_iter = run.max_iter;
  card_.starts.push_back(options_.start);
  start().seed = Join(run.seed);
  start().first_iter = start().last_iter = run.first_iter;
  Write();
}

void CardObserver::ReadHistory() {
  if (!Exists(JoinPath(options_.folder, kCardName))) return;
  try {
    card_.starts = ReadRunCard(options_.folder).starts;
    history_ = ReadRunMetrics(options_.folder);
    if (!history_.loss.empty()) card_.loss = history_.loss.back().value;
  } catch (const Error& e) {
    LOG(WARNING) << EscapeControl(Join("the new card lacks earlier starts of the run: ", e.what()));
  }
}

void CardObserver::OnTest(const TestReport& report) {
  if (report.interrupted || report.net != 0) return;
  MetricRow row;
  row.iter = report.iter;
  row.outputs = NamedOutputs(report.outputs);
  if (history_.tests.empty()) history_.tests.resize(1);
  history_.tests[0].push_back(std::move(row));
}

void CardObserver::OnSnapshot(const SnapshotReport& report) {
  history_.model = report.model;
  history_.weights.emplace_back(report.iter,
                                report.averaged.empty() ? report.model : report.averaged);
  Write();
}

void CardObserver::OnEnd(const RunEnd& end) {
  card_.state = end.stopped_early ? "stopped" : "finished";
  Write();
}

void CardObserver::AddEnergy(const std::vector<EnergyTotal>& energy) {
  for (const EnergyTotal& total : energy) {
    const auto is_same = [&](const EnergyTotal& known) { return IsSamePart(known, total); };
    if (std::ranges::any_of(start().energy, is_same) || std::ranges::any_of(others_, is_same)) {
      continue;
    }
    others_.push_back(total);
  }
  Write();
}

void CardObserver::Write() {
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin_;
  start().seconds = passed.count();
  start().records = (start().last_iter - start().first_iter) * records_;
  start().energy.clear();
  if (options_.energy != nullptr) start().energy = options_.energy->Read();
  start().energy.insert(start().energy.end(), others_.begin(), others_.end());
  card_.best = BestTestOf(history_, options_.best_output);
  if (!history_.tests.empty() && !history_.tests[0].empty()) {
    card_.test_iter = static_cast<int64_t>(history_.tests[0].back().iter);
    card_.test = history_.tests[0].back().outputs;
  }
  card_.model = IdentifyForCard(history_.model);
  try {
    WriteWhole(JoinPath(options_.folder, kCardName), ToJson(card_).ToString());
  } catch (const Error& e) {
    WarnOfRunFolder(e.what());
  }
}

}  // namespace trainer

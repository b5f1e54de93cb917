// The log lines of a run, as the tools that read Caffe's logs expect them.

#include <glog/logging.h>

#include <cmath>

#include "trainer/monitor/observer.h"

namespace trainer {
namespace {

// Returns " (* 1 = 0.23 loss)" for an output that is part of the loss, else "".
std::string LossPart(const ReportedValue& output) {
  if (output.loss_weight == 0) return "";
  return Join(" (* ", output.loss_weight, " = ", output.loss_weight * output.value, " loss)");
}

// Returns " (12.5 iter/s, 8s/100 iters)"; "" if a run has just been resumed, because the speed is
// unknown. At iteration 0 the numbers are zeros, as in Caffe's log.
std::string LogSpeed(const IterationReport& report) {
  if (report.iterations == 0 && report.iter > 0) return "";
  const double rate = report.seconds > 0 ? report.iterations / report.seconds : 0;
  return Join(" (", static_cast<float>(rate), " iter/s, ", static_cast<float>(report.seconds), "s/",
              report.iterations, " iters)");
}

std::string LogPercent(double share) { return Join(std::lround(share * 100), " %"); }

// Logs a line. Names come from the user or a file; a line break in one would look like another line
// of the log, so it is escaped.
void LogText(const std::string& text) { LOG(INFO) << EscapeControl(text); }

// Writes the lines of Caffe's log, and lines of its own for what Caffe does not have.
class LogObserver final : public TrainingObserver {
 public:
  void OnStart(const RunStart& start) override {
    LogText("Solving " + start.net);
    LogText("Learning Rate Policy: " + start.lr_policy);
  }

  // Logs Caffe's lines of a displayed iteration. After the last update, Caffe logs only the loss.
  void OnIteration(const IterationReport& report) override {
    if (report.after_last) {
      LogText(Join("Iteration ", report.iter, ", loss = ", report.loss));
      return;
    }
    LogText(Join("Iteration ", report.iter, LogSpeed(report), ", loss = ", report.loss));
    for (size_t i = 0; i < report.outputs.size(); ++i) {
      const ReportedValue& output = report.outputs[i];
      LogText(Join("    Train net output #", i, ": ", output.name, " = ", output.value,
                   LossPart(output)));
    }
    LogText(Join("Iteration ", report.iter, ", lr = ", report.rate));
    if (report.loss_scale > 0) {
      LogText(Join("    Loss scale: ", report.loss_scale, ", ", report.skipped_steps,
                   " updates skipped"));
    }
  }

  // Logs how the ranks spent their time and, if the others waited for one rank, for which and why.
  void OnRanks(const RanksReport& report) override {
    std::string slowest;
    if (!report.slowest.empty()) {
      slowest = Join("; the others waited ", LogPercent(report.cost), " of their time for ",
                     report.slowest);
      if (report.slowest_data > report.cost / 2) {
        slowest += Join(", which itself waited ", LogPercent(report.slowest_data), " for data");
      }
    }
    const std::string hidden =
        report.hidden > 0
            ? Join(" (", LogPercent(report.hidden), " of their time overlapped with computation)")
            : "";
    LogText(Join("    Ranks: ", LogPercent(report.computing), " computing, ",
                 LogPercent(report.exchange), " waiting for sums", hidden, ", ",
                 LogPercent(report.data), " waiting for data", slowest));
  }

  // Logs the state of the GPU only with --v=1.
  void OnGpu(const GpuReport& report) override { VLOG(1) << "    GPU: " << report.text; }

  void OnTestStart(int iter, int net) override {
    LogText(Join("Iteration ", iter, ", Testing net (#", net, ")"));
  }

  void OnTest(const TestReport& report) override {
    if (report.interrupted) {
      LOG(INFO) << "Test interrupted.";
      return;
    }
    if (report.has_loss) LogText(Join("Test loss: ", report.loss));
    for (size_t i = 0; i < report.outputs.size(); ++i) {
      const ReportedValue& output = report.outputs[i];
      LogText(Join("    Test net output #", i, ": ", output.name, " = ", output.value,
                   LossPart(output)));
    }
  }

  // Logs the names of the files before they are written, as Caffe does.
  void OnSnapshotStart(const SnapshotReport& report) override {
    const char* to = report.model.ends_with(".h5") ? "to HDF5 file " : "to binary proto file ";
    LogText(Join("Snapshotting ", to, report.model));
    if (!report.averaged.empty()) {
      LogText(Join("Snapshotting averaged weights ", to, report.averaged));
    }
    LogText(Join("Snapshotting solver state ", to, report.state));
  }

  void OnNote(const std::string& text) override { LogText(text); }

  void OnEnd(const RunEnd& end) override {
    LOG(INFO) << (end.stopped_early ? "Optimization stopped early." : "Optimization Done.");
  }
};

const RegisterObserver<LogObserver> kLog("log");

}  // namespace
}  // namespace trainer

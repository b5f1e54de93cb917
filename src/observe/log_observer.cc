// The log lines of a run, as the tools that read Caffe's logs expect them.

#include <glog/logging.h>

#include <cmath>

#include "trainer/observe/observer.h"

namespace trainer {
namespace {

// " (* 1 = 0.23 loss)" for an output that counts.
std::string LossPart(const ReportedValue& output) {
  if (output.loss_weight == 0) return "";
  return Join(" (* ", output.loss_weight, " = ", output.loss_weight * output.value, " loss)");
}

// " (12.5 iter/s, 8s/100 iters)". Nothing is known of it where a run has just been resumed; at
// iteration 0 the zeros of Caffe's log stand.
std::string LogSpeed(const IterationReport& report) {
  if (report.iterations == 0 && report.iter > 0) return "";
  const double rate = report.seconds > 0 ? report.iterations / report.seconds : 0;
  return Join(" (", static_cast<float>(rate), " iter/s, ", static_cast<float>(report.seconds), "s/",
              report.iterations, " iters)");
}

std::string LogPercent(double share) { return Join(std::lround(share * 100), " %"); }

class LogObserver final : public Observer {
 public:
  void OnStart(const RunStart& start) override {
    LOG(INFO) << "Solving " << start.net;
    LOG(INFO) << "Learning Rate Policy: " << start.lr_policy;
  }

  void OnIteration(const IterationReport& report) override {
    if (report.after_last) {
      LOG(INFO) << Join("Iteration ", report.iter, ", loss = ", report.loss);
      return;
    }
    LOG(INFO) << Join("Iteration ", report.iter, LogSpeed(report), ", loss = ", report.loss);
    for (size_t i = 0; i < report.outputs.size(); ++i) {
      const ReportedValue& output = report.outputs[i];
      LOG(INFO) << Join("    Train net output #", i, ": ", output.name, " = ", output.value,
                        LossPart(output));
    }
    LOG(INFO) << Join("Iteration ", report.iter, ", lr = ", report.rate);
    if (report.loss_scale > 0) {
      LOG(INFO) << Join("    Loss scale: ", report.loss_scale, ", ", report.skipped_steps,
                        " updates skipped");
    }
  }

  void OnReplicas(const ReplicasReport& report) override {
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
            ? Join(" (", LogPercent(report.hidden), " of their time was hidden behind computing)")
            : "";
    LOG(INFO) << Join("    Ranks: ", LogPercent(report.computing), " computing, ",
                      LogPercent(report.exchange), " waiting for sums", hidden, ", ",
                      LogPercent(report.data), " waiting for data", slowest);
  }

  void OnGpu(const GpuReport& report) override { VLOG(1) << "    GPU: " << report.text; }

  void OnTestStart(int iter, int net) override {
    LOG(INFO) << Join("Iteration ", iter, ", Testing net (#", net, ")");
  }

  void OnTest(const TestReport& report) override {
    if (report.interrupted) {
      LOG(INFO) << "Test interrupted.";
      return;
    }
    if (report.has_loss) LOG(INFO) << Join("Test loss: ", report.loss);
    for (size_t i = 0; i < report.outputs.size(); ++i) {
      const ReportedValue& output = report.outputs[i];
      LOG(INFO) << Join("    Test net output #", i, ": ", output.name, " = ", output.value,
                        LossPart(output));
    }
  }

  void OnSnapshotStart(const SnapshotReport& report) override {
    const char* to = report.model.ends_with(".h5") ? "to HDF5 file " : "to binary proto file ";
    LOG(INFO) << "Snapshotting " << to << report.model;
    if (!report.averaged.empty()) {
      LOG(INFO) << "Snapshotting averaged weights " << to << report.averaged;
    }
    LOG(INFO) << "Snapshotting solver state " << to << report.state;
  }

  void OnNote(const std::string& text) override { LOG(INFO) << text; }

  void OnEnd(bool stopped_early) override {
    LOG(INFO) << (stopped_early ? "Optimization stopped early." : "Optimization Done.");
  }
};

const RegisterObserver<LogObserver> kLog("log");

}  // namespace
}  // namespace trainer

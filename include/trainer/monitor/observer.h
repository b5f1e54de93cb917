#pragma once
// The events of a run. An observer gets plain structs and knows no solver; each has a file in
// src/monitor/observers/.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/base/registry.h"

namespace trainer {

// One number that a net reported: an element of an output blob.
struct ReportedValue {
  std::string name;
  float value = 0;
  float loss_weight = 0;  // 0 for a plain output
};

// A start of the run; a resumed run has several. `records` is the number that an iteration reads on
// all ranks together.
struct RunStart {
  std::string net, lr_policy;
  int first_iter = 0, max_iter = 0;
  int64_t records = 0;  // 0: unknown
  uint64_t seed = 0;    // of the random numbers
};

// A training iteration at the display interval, before its update.
struct IterationReport {
  int iter = 0;
  float loss = 0;             // smoothed over average_loss iterations
  double seconds = 0;         // since the last report, or since the start
  int iterations = 0;         // in `seconds`; 0 if the run began with this one
  float rate = 0;             // the learning rate of this update
  double data_seconds = 0;    // the part of `seconds` in which this rank waited for data
  int64_t epoch = -1;         // how often reading has started over; -1: unknown
  float loss_scale = 0;       // the factor on the loss's gradient; 0: not scaled
  int64_t skipped_steps = 0;  // updates skipped so far because a scaled gradient was not finite
  std::span<const ReportedValue> outputs;
  bool after_last = false;  // the extra forward pass after the last update: only the loss counts
};

// How several ranks spent the time since the last report, without tests and snapshots.
struct RanksReport {
  // Fractions of the time, means over the ranks: computing, in the all-reduce (mostly waiting), and
  // waiting for data.
  double computing = 0, exchange = 0, data = 0;
  double hidden = 0;  // the fraction of the all-reduce that overlapped with computing
  // The rank that the others waited for; "" if the wait was short.
  std::string slowest;
  double cost = 0;          // the fraction of their time that the others waited for it
  double slowest_data = 0;  // the fraction of its own time that it waited for data
};

// The state of the GPU at the display of iteration `iter`, as its driver reports it.
struct GpuReport {
  int iter = 0;
  std::string text;  // "93 % busy, 12.4 of 79.6 GiB, 412 of 700 W, 61 C"
  double busy = -1;  // share of the last second or less in which it computed; -1: unknown
  std::vector<ReportedValue> numbers;  // "busy" 0.93, "memory_bytes", "watts", "celsius", ...
};

// The results of a test of one test net, or of a test that a signal interrupted.
struct TestReport {
  int iter = 0, net = 0;
  bool has_loss = false;  // test_compute_loss
  float loss = 0;
  bool interrupted = false;
  bool is_best = false;                    // the best test of the run so far
  std::span<const ReportedValue> outputs;  // means over the test's batches
};

// A snapshot that is about to be written, or that was written.
struct SnapshotReport {
  int iter = 0;
  std::string model, state;  // files
  std::string averaged;      // the file of averaged weights, or ""
};

// A parameter before its update in the first iteration and in each that follows a test, with the
// weights that were tested. Reported only with SolverOptions::shows_numbers.
struct ParamReport {
  int iter = 0;
  std::string name;  // "conv1/0": the layer and the parameter's number in it
  std::span<const int64_t> shape;
  // In NCHW order if there are four axes, else in the order of the memory.
  std::span<const float> weights;
  std::span<const float> gradients;  // sums over passes and ranks; empty: not learned
  float gradient_scale = 1;          // turns the sums into means
};

// The first images of the first training batch, (N, C, H, W). Reported once for each blob of
// images, only with SolverOptions::shows_numbers.
struct BatchReport {
  int iter = 0;
  std::string blob;
  std::span<const int64_t> shape;
  std::span<const float> numbers;
};

// The end of a run that did not fail.
struct RunEnd {
  bool stopped_early = false;  // by a signal or the time limit, or to be continued later
  // After the last iteration, smoothed over average_loss iterations; nothing if there was none.
  std::optional<float> loss{};
};

// The interface of observers. The training thread calls it in the order of the events, so a call
// must be quick. An observer must not throw if it fails itself, because that would end the run.
class TrainingObserver {
 public:
  virtual ~TrainingObserver() = default;
  // Called once, before the first iteration.
  virtual void OnStart(const RunStart&) {}
  // Called at the display interval, see SolverParameter.display.
  virtual void OnIteration(const IterationReport&) {}
  // Called after each iteration with the number of completed iterations. It must be fast.
  virtual void OnStep(int /*iter*/) {}
  virtual void OnParam(const ParamReport&) {}
  virtual void OnBatch(const BatchReport&) {}
  // Called after OnIteration if the run has several ranks.
  virtual void OnRanks(const RanksReport&) {}
  // Called at the display after the one that it belongs to, or at the end, if the GPU is watched.
  virtual void OnGpu(const GpuReport&) {}
  // Called before a test of test net number `net`.
  virtual void OnTestStart(int /*iter*/, int /*net*/) {}
  // Called after a test, also if it was interrupted.
  virtual void OnTest(const TestReport&) {}
  // Called before the files are written, with their names; OnSnapshot is called when they are
  // complete and verified.
  virtual void OnSnapshotStart(const SnapshotReport&) {}
  virtual void OnSnapshot(const SnapshotReport&) {}
  // Called with a line about the update, such as clipping or a step of the learning rate.
  virtual void OnNote(const std::string&) {}
  // Called once after the last iteration. Not called if the run fails.
  virtual void OnEnd(const RunEnd&) {}
};

using ObserverRegistry = Registry<TrainingObserver>;

// Registers an observer by name: const RegisterObserver<LogObserver> kLog("log");
template <class T>
using RegisterObserver = Registration<TrainingObserver, T>;

// Passes every event on to each of its observers, in their order.
class ObserverList final : public TrainingObserver {
 public:
  void Add(std::unique_ptr<TrainingObserver> observer) {
    observers_.push_back(std::move(observer));
  }

  void OnStart(const RunStart& e) override {
    All([&](TrainingObserver& o) { o.OnStart(e); });
  }
  void OnIteration(const IterationReport& e) override {
    All([&](TrainingObserver& o) { o.OnIteration(e); });
  }
  void OnStep(int iter) override {
    All([&](TrainingObserver& o) { o.OnStep(iter); });
  }
  void OnParam(const ParamReport& e) override {
    All([&](TrainingObserver& o) { o.OnParam(e); });
  }
  void OnBatch(const BatchReport& e) override {
    All([&](TrainingObserver& o) { o.OnBatch(e); });
  }
  void OnRanks(const RanksReport& e) override {
    All([&](TrainingObserver& o) { o.OnRanks(e); });
  }
  void OnGpu(const GpuReport& e) override {
    All([&](TrainingObserver& o) { o.OnGpu(e); });
  }
  void OnTestStart(int iter, int net) override {
    All([&](TrainingObserver& o) { o.OnTestStart(iter, net); });
  }
  void OnTest(const TestReport& e) override {
    All([&](TrainingObserver& o) { o.OnTest(e); });
  }
  void OnSnapshotStart(const SnapshotReport& e) override {
    All([&](TrainingObserver& o) { o.OnSnapshotStart(e); });
  }
  void OnSnapshot(const SnapshotReport& e) override {
    All([&](TrainingObserver& o) { o.OnSnapshot(e); });
  }
  void OnNote(const std::string& text) override {
    All([&](TrainingObserver& o) { o.OnNote(text); });
  }
  void OnEnd(const RunEnd& e) override {
    All([&](TrainingObserver& o) { o.OnEnd(e); });
  }

 private:
  // Calls `call` with each observer in turn.
  template <class F>
  void All(F call) {
    for (const auto& observer : observers_) call(*observer);
  }
  std::vector<std::unique_ptr<TrainingObserver>> observers_;
};

}  // namespace trainer

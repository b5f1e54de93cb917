#include "test_subject.h"

#include <glog/logging.h>

#include "shared_flags.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/monitor/best_test.h"
#include "trainer/monitor/history.h"
#include "trainer/monitor/run_directory.h"
#include "trainer/monitor/run_folder.h"

namespace trainer {
namespace {

// A file as the run named it, as seen from the folder it began in.
std::string FileOfRun(const std::string& folder, const std::string& name) {
  if (name.empty() || Exists(name)) return name;
  return JoinPath(RunDirectory(folder).ReadInfo().folder, name);
}

// The weights of the best test where the run has saved them, else those of the newest snapshot.
std::string WeightsOfRun(const std::string& folder) {
  const RunHistory history = ReadRun(folder);
  if (history.weights.empty()) {
    throw Error(ErrorCode::kNoInput, {AbsolutePath(folder)},
                "this run has not saved a snapshot yet; give the weights with --weights=FILE");
  }
  const auto& [newest_iter, newest] = history.weights.back();
  const std::optional<BestTest> best = BestTestOf(history, BestOutputOf(folder));
  if (!best) return FileOfRun(folder, newest);
  const std::string what = Join("the best test of the run, ", best->output, " ",
                                static_cast<float>(best->value), " at iteration ", best->iter);
  const std::string file = FileOfRun(folder, best->weights);
  if (!file.empty() && Exists(file)) {
    LOG(INFO) << EscapeControl(Join("Testing the weights of ", what, ": ", file));
    return file;
  }
  LOG(WARNING) << EscapeControl(
      Join("there is no snapshot of ", what, "; testing the newest one instead, of iteration ",
           newest_iter, " (to keep the best: set keep_best: 1, with a snapshot at each test)"));
  return FileOfRun(folder, newest);
}

TestSubject OfRun(const Flags& flags) {
  TestSubject subject;
  subject.folder = flags.Text("run");
  if (flags.Has("model")) {
    throw Error(ErrorCode::kUsage,
                "--run and --model cannot both be given: both name a net; leave one of them out");
  }
  subject.weights = flags.List("weights");
  if (subject.weights.empty()) subject.weights = {WeightsOfRun(subject.folder)};
  RequireFiles(subject.weights);
  subject.file = JoinPath(subject.folder, kSolverName);
  Overrides overrides(flags.Each("set"));
  subject.solver = LoadSolver(subject.file, StateFlagsOf(flags), &overrides);
  if (subject.solver->tests.empty()) {
    throw Error(ErrorCode::kConfig, {subject.file},
                "this run has no test net: its solver has no test_iter, or its tests were turned "
                "off. Give --model and --weights instead of --run");
  }
  subject.state = subject.solver->tests[0].state;
  return subject;
}

TestSubject OfFiles(const Flags& flags) {
  for (const char* flag : {"model", "weights"}) {
    if (flags.Has(flag)) continue;
    throw Error(ErrorCode::kUsage,
                Join("'trainer test' needs --", flag,
                     "=FILE, or --run=DIR for the test net and the best weights of a run"));
  }
  TestSubject subject;
  subject.weights = flags.List("weights");
  RequireFiles(subject.weights);
  subject.file = flags.Text("model");
  subject.model = ModelOf(flags);
  subject.state = NetStateOf(flags, caffe::TEST);
  return subject;
}

}  // namespace

TestSubject SubjectOf(const Flags& flags) {
  TestSubject subject = flags.Has("run") ? OfRun(flags) : OfFiles(flags);
  if (flags.Has("iterations")) subject.batches = flags.Whole("iterations");
  return subject;
}

}  // namespace trainer

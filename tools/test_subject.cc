#include "test_subject.h"

#include "run_environment.h"
#include "shared_flags.h"
#include "trainer/base/error.h"
#include "trainer/base/file.h"
#include "trainer/base/text.h"
#include "trainer/observe/run_folder.h"
#include "trainer/report/history.h"

namespace trainer {
namespace {

constexpr int kBatches = 50;  // as Caffe's program

// The weights of the newest snapshot, which the run named as seen from the folder it began in.
std::string NewestWeights(const std::string& folder) {
  const std::string model = ReadRun(folder).model;
  if (model.empty()) {
    throw Error(ErrorCode::kNoInput, {AbsolutePath(folder)},
                "this run has saved no snapshot yet; give the weights with --weights=FILE");
  }
  if (Exists(model)) return model;
  return JoinPath(TextOf(EnvironmentOf(folder), "folder"), model);
}

TestSubject OfRun(const Flags& flags) {
  TestSubject subject;
  subject.folder = flags.Text("run");
  if (flags.Has("model")) {
    throw Error(ErrorCode::kUsage, "--run and --model both name a net; give one of them");
  }
  subject.weights = flags.List("weights");
  if (subject.weights.empty()) subject.weights = {NewestWeights(subject.folder)};
  RequireFiles(subject.weights);
  subject.file = JoinPath(subject.folder, kSolverName);
  Overrides overrides(flags.Each("set"));
  subject.solver = LoadSolver(subject.file, StateFlagsOf(flags), &overrides);
  if (subject.solver->tests.empty()) {
    throw Error(ErrorCode::kConfig, {subject.file},
                "this run has no test net: its solver has no test_iter, or tests were turned off. "
                "Give --model and --weights in place of --run");
  }
  subject.state = subject.solver->tests[0].state;
  subject.batches = subject.solver->proto.test_iter(0);
  return subject;
}

TestSubject OfFiles(const Flags& flags) {
  for (const char* flag : {"model", "weights"}) {
    if (flags.Has(flag)) continue;
    throw Error(ErrorCode::kUsage,
                Join("'trainer test' needs --", flag,
                     "=FILE, or --run=DIR for the test net and the newest weights of a run"));
  }
  TestSubject subject;
  subject.weights = flags.List("weights");
  RequireFiles(subject.weights);
  subject.file = flags.Text("model");
  subject.model = ModelOf(flags);
  subject.state = NetStateOf(flags, caffe::TEST);
  subject.batches = kBatches;
  return subject;
}

}  // namespace

TestSubject SubjectOf(const Flags& flags) {
  TestSubject subject = flags.Has("run") ? OfRun(flags) : OfFiles(flags);
  if (flags.Has("iterations")) subject.batches = flags.Whole("iterations");
  return subject;
}

}  // namespace trainer

#include <iostream>
#include <string>

#include "flag_groups.h"
#include "run_flags.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/cli/verb.h"
#include "trainer/run/preflight/preflight.h"

namespace trainer {
namespace {

// Checks a run or a net without training, and prints all problems. The exit code says whether there
// are errors.
class Check final : public Verb {
 public:
  void Declare(FlagSet& flags) override {
    flags.Bind(&run_.solver.file, "solver", "FILE", "check a run of this solver");
    flags.Bind(&model_, "model", "FILE", "check only this net");
    DeclareStart(flags, &run_.start);
    DeclareJson(flags, &json_);
    DeclarePhase(flags, &phase_);
    DeclareState(flags, &run_.solver.state);
    DeclareSet(flags, &run_.solver.set);
    DeclareFreeze(flags, &run_.solver);
    DeclareUnfreezeAt(flags, &run_.solver);
    DeclareBatch(flags, &run_.batch);
    DeclareMemoryLimit(flags, &run_.memory);
    DeclareDevice(flags, &run_.device);
    DeclareDbLock(flags, &run_.input.db_lock);
    flags_ = &flags;
  }

  int Run() override {
    if (run_.solver.file.empty() == model_.empty()) {
      throw Error(ErrorCode::kUsage, "'trainer check' needs either --solver=FILE or --model=FILE");
    }
    RequireOneStart(run_.start);
    const bool log_to_stderr =
        flags_->values().Switch("alsologtostderr") || flags_->values().Switch("logtostderr");
    run_.memory_mode = ParseMemoryMode(run_.memory);
    const PreflightReport report =
        model_.empty() ? Preflight(run_, log_to_stderr) : Preflight(NetToCheck(), log_to_stderr);
    std::cout << (json_ ? ToJson(report).ToString() : ToText(report));
    return report.diagnostics.ExitCode();
  }

 private:
  // Returns the check of --model. Throws kUsage for flags that only a run has.
  NetRequest NetToCheck() const {
    if (!run_.start.snapshot.empty() || !run_.start.resume.empty()) {
      throw Error(ErrorCode::kUsage,
                  "--snapshot and --resume need --solver; --model=FILE checks a net without a run");
    }
    if (!run_.batch.empty() || !run_.memory.empty()) {
      throw Error(ErrorCode::kUsage,
                  "--batch and --memory need --solver; --model=FILE checks a net without a run");
    }
    if (!run_.solver.freeze.empty() || run_.solver.unfreeze_at > 0 || !run_.start.reset.empty()) {
      throw Error(ErrorCode::kUsage,
                  "--freeze, --unfreeze_at and --reset need --solver; --model=FILE checks a net "
                  "without a run");
    }
    return {model_,      run_.solver.set, run_.solver.state, phase_, SplitList(run_.start.weights),
            run_.device, run_.input};
  }

  TrainRequest run_;
  std::string model_;
  caffe::Phase phase_ = caffe::TRAIN;
  bool json_ = false;
  const FlagSet* flags_ = nullptr;
};

const RegisterVerb<Check> kCheckVerb("check");

}  // namespace
}  // namespace trainer

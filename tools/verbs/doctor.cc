#include <iostream>
#include <memory>
#include <utility>

#include "flag_groups.h"
#include "trainer/analysis/input/input_report.h"
#include "trainer/cli/verb.h"
#include "trainer/run/device.h"
#include "trainer/run/solver_source.h"
#include "trainer/storage/cursor.h"

namespace trainer {
namespace {

// Measures how fast training uses records and how fast its data can be read, and gives advice.
class Doctor final : public Verb {
 public:
  void Declare(FlagSet& flags) override {
    flags.Bind(&source_.file, "solver", "FILE", "the solver").Required();
    flags.Bind(&options_.iterations, "iterations", "N", "how many iterations to measure").Range(1);
    flags.Bind(&seconds_, "seconds", "N", "the longest time of each reading measurement")
        .Range(1, 3600);
    DeclareState(flags, &source_.state);
    DeclareSet(flags, &source_.set);
    DeclareMemoryMode(flags, &options_.memory);
    DeclareDevice(flags, &device_);
    DeclareDbLock(flags, &lock_);
  }

  int Run() override {
    SetDbLock(lock_);
    options_.seconds = seconds_;
    SolverSpec spec = ReadSolver(source_);
    const std::unique_ptr<Device> device = MakeLoggedDevice(ChooseDevice(device_, spec));
    std::cout << ToText(DiagnoseInput(std::move(spec), *device, options_));
    return 0;
  }

 private:
  SolverSource source_;
  DiagnosisOptions options_;
  int seconds_ = 2;
  DeviceOptions device_;
  DbLock lock_ = DbLock::kAuto;
};

const RegisterVerb<Doctor> kDoctor("doctor");

}  // namespace
}  // namespace trainer

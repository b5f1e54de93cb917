#include <glog/logging.h>

#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "flag_groups.h"
#include "trainer/analysis/timing/net_profile.h"
#include "trainer/analysis/timing/profile_report.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/cli/verb.h"
#include "trainer/inference/pack/model_pack.h"
#include "trainer/run/device.h"
#include "trainer/run/solver_source.h"
#include "trainer/storage/cursor.h"

namespace trainer {
namespace {

// Measures the time of each layer, in passes of a net or in iterations of a solver.
class Time final : public Verb {
 public:
  void Declare(FlagSet& flags) override {
    flags.Bind(&solver_, "solver", "FILE", "measure this solver's iteration");
    flags.Bind(&net_.file, "model", "FILE", "measure this net");
    DeclareWeights(flags, &options_.weights);
    DeclareIterations(flags, &options_.iterations);
    DeclarePhase(flags, &phase_);
    DeclareNetChanges(flags, &net_);
    DeclareMemoryMode(flags, &options_.memory);
    DeclareJson(flags, &json_);
    DeclareDevice(flags, &device_);
    DeclareDbLock(flags, &db_lock_);
  }

  int Run() override {
    SetDbLock(db_lock_);
    if (solver_.empty() == net_.file.empty()) {
      throw Error(ErrorCode::kUsage, "'trainer time' needs either --solver=FILE or --model=FILE");
    }
    static_cast<void>(ChooseDevice(device_));  // before the files are read
    options_.peak = true;
    const NetProfile profile = solver_.empty() ? TimeModel() : TimeSolver();
    LogProfile(profile);
    std::cout << (json_ ? ToJson(profile).ToString() : ToText(profile, VLOG_IS_ON(1)));
    return 0;
  }

 private:
  // Measures the iterations of --solver.
  NetProfile TimeSolver() const {
    SolverSpec spec = ReadSolver({.file = solver_, .set = net_.set, .state = net_.state});
    const std::unique_ptr<Device> device = MakeLoggedDevice(ChooseDevice(device_, spec));
    RequireFiles(options_.weights);
    return ProfileSolver(std::move(spec), *device, options_);
  }

  // Measures forward and backward passes of --model.
  NetProfile TimeModel() {
    RequireFiles(options_.weights);
    const NetSpec spec = LoadModel(net_, &options_.weights);
    const std::unique_ptr<Device> device = MakeLoggedDevice(ChooseDevice(device_, spec));
    return ProfileModel(spec, MakeNetState(phase_, net_.state), *device, options_);
  }

  std::string solver_;
  NetSource net_;
  caffe::Phase phase_ = caffe::TRAIN;
  ProfileOptions options_{.iterations = 50, .weights = {}, .inspect = {}};
  bool json_ = false;
  DeviceOptions device_;
  DbLock db_lock_ = DbLock::kAuto;
};

const RegisterVerb<Time> kTime("time");

}  // namespace
}  // namespace trainer

#include <cstdint>
#include <iostream>
#include <memory>

#include "flag_groups.h"
#include "run_flags.h"
#include "trainer/cli/verb.h"
#include "trainer/run/device.h"
#include "trainer/run/search/batch_report.h"
#include "trainer/run/search/batch_search.h"
#include "trainer/run/solver_source.h"

namespace trainer {
namespace {

// Finds the largest batch that fits into memory and the fastest one, and prints both.
class FindBatch final : public Verb {
 public:
  void Declare(FlagSet& flags) override {
    flags.Bind(&solver_.file, "solver", "FILE", "the solver").Required();
    flags.Bind(&max_batch_, "most", "N", "the largest batch to try").Range(1, 1 << 24);
    flags.Bind(&seconds_, "seconds", "N", "about how long to run batches; 0: only plan them");
    flags
        .Bind(&iterations_, "iterations", "N",
              "how many iterations to measure with each batch in each round")
        .Range(1);
    DeclareState(flags, &solver_.state);
    DeclareSet(flags, &solver_.set);
    DeclareMemoryLimit(flags, &memory_);
    DeclareJson(flags, &json_);
    DeclareDevice(flags, &device_);
  }

  int Run() override {
    static_cast<void>(ChooseDevice(device_));  // throws for a wrong --gpu before files are read
    SolverSpec spec = ReadSolver(solver_);
    const std::unique_ptr<Device> device = MakeLoggedDevice(ChooseDevice(device_, spec));
    BatchSearchOptions options = MakeBatchSearchOptions(memory_, ParseMemoryMode(memory_), *device);
    options.max_batch = static_cast<uint32_t>(max_batch_);
    options.iterations = iterations_;
    options.time = std::chrono::seconds(seconds_);
    const BatchSearchResult result = SearchBatchSize(options, *device, &spec);
    std::cout << (json_ ? ToJson(result, options).ToString() : ToText(result, options, spec));
    return 0;
  }

 private:
  SolverSource solver_;
  DeviceOptions device_;
  std::string memory_;
  int max_batch_ = 4096, seconds_ = 60, iterations_ = 10;
  bool json_ = false;
};

const RegisterVerb<FindBatch> kFindBatch("find-batch");

}  // namespace
}  // namespace trainer

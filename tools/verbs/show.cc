#include <iostream>

#include "flag_groups.h"
#include "trainer/analysis/summary/net_summary.h"
#include "trainer/base/log/log.h"
#include "trainer/cli/verb.h"

namespace trainer {
namespace {

// Prints the layers of a net with their shapes, parameters and work.
class Show final : public Verb {
 public:
  void Declare(FlagSet& flags) override {
    DeclareModel(flags, &net_);
    DeclarePhase(flags, &phase_);
    DeclareNetChanges(flags, &net_);
    DeclareJson(flags, &json_);
  }

  int Run() override {
    const WarningsOnly warnings_only;
    const NetSummary summary = SummarizeNet(LoadNet(net_), MakeNetState(phase_, net_.state));
    std::cout << (json_ ? ToJson(summary).ToString() : ToText(summary));
    return 0;
  }

 private:
  NetSource net_;
  caffe::Phase phase_ = caffe::TRAIN;
  bool json_ = false;
};

const RegisterVerb<Show> kShowVerb("show");

}  // namespace
}  // namespace trainer

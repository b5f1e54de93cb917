#include <iostream>

#include "shared_flags.h"
#include "trainer/analysis/summary/net_summary.h"
#include "trainer/base/log/log.h"
#include "trainer/cli/verb.h"

namespace trainer {
namespace {

class Show final : public Verb {
 public:
  VerbDoc Doc() const override {
    return {
        .task = VerbTask::kLook,
        .summary = "show a net's layers with shapes, parameters, work and memory",
        .usage = "trainer show --model=FILE [--phase=TEST] [--json] [flags]",
        .text =
            "Prints one line per layer, including Split layers. A shared parameter counts only for "
            "the layer that owns it. The net's databases must exist; a deploy net needs none.",
        .examples =
            "trainer show --model=models/lenet/train_test.prototxt\n"
            "trainer show --model=deploy.prototxt --phase=TEST --json",
        .flags = {{.name = "model", .value = "FILE", .help = "the net", .required = true},
                  PhaseFlag(),
                  LevelFlag(),
                  StageFlag(),
                  SetFlag(),
                  JsonFlag()},
    };
  }

  int Run(const Flags& flags) override {
    const WarningsOnly warnings_only;
    const NetSummary summary = SummarizeNet(ModelOf(flags), NetStateOf(flags, PhaseOf(flags)));
    std::cout << (flags.Switch("json") ? ToJson(summary).ToString() : ToText(summary));
    return 0;
  }
};

const RegisterVerb<Show> kShowVerb("show");

}  // namespace
}  // namespace trainer

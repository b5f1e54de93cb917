#include <iostream>

#include "flag_groups.h"
#include "trainer/analysis/summary/net_summary.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/log/log.h"
#include "trainer/base/text/text.h"
#include "trainer/cli/verb.h"
#include "trainer/config/text/prototxt.h"
#include "trainer/inference/pack/model_pack.h"

namespace trainer {
namespace {

// Prints the layers of a net with their shapes, parameters and work, or the card of a pack.
class Show final : public Verb {
 public:
  void Declare(FlagSet& flags) override {
    flags.BindWords(&packs_, 1);
    flags.Bind(&net_.file, "model", "FILE", "the net");
    DeclarePhase(flags, &phase_);
    DeclareNetChanges(flags, &net_);
    DeclareJson(flags, &json_);
  }

  int Run() override {
    if (packs_.empty() == net_.file.empty()) {
      throw Error(ErrorCode::kUsage,
                  "'trainer show' needs either --model=FILE or the file of a "
                  "pack");
    }
    const WarningsOnly warnings_only;
    if (!packs_.empty()) {
      PrintCard(packs_[0]);
      return 0;
    }
    const NetSummary summary = SummarizeNet(LoadModel(net_), MakeNetState(phase_, net_.state));
    std::cout << (json_ ? ToJson(summary).ToString() : ToText(summary));
    return 0;
  }

 private:
  void PrintCard(const std::string& file) const {
    RefuseOnnx(file);
    if (IsDirectory(file)) {
      throw Error(ErrorCode::kUsage,
                  EscapeControl(Join(file, " is a folder; 'trainer status ", file,
                                     "' describes a run, and 'trainer pack --run=", file,
                                     " --out=model.trainer' makes a pack of it")));
    }
    if (Exists(file) && !IsPack(file)) {
      throw Error(ErrorCode::kUsage,
                  EscapeControl(Join(file, " is not a pack of 'trainer pack'; --model=", file,
                                     " shows the layers of a net")));
    }
    std::cout << (json_ ? PackCardJson(file) : PackCardText(file));
  }

  std::vector<std::string> packs_;
  NetSource net_;
  caffe::Phase phase_ = caffe::TRAIN;
  bool json_ = false;
};

const RegisterVerb<Show> kShowVerb("show");

}  // namespace
}  // namespace trainer

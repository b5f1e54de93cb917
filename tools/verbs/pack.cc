#include <glog/logging.h>

#include "flag_groups.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/cli/verb.h"
#include "trainer/inference/export/export_net.h"
#include "trainer/inference/pack/pack_writer.h"

namespace trainer {
namespace {

// Writes a trained model as one file.
class PackModel final : public Verb {
 public:
  void Declare(FlagSet& flags) override {
    flags.Bind(&options_.target.run, "run", "DIR",
               "the folder of a run: its net, the weights of its best test, its labels and its "
               "card");
    flags.Bind(&options_.target.model.file, "model", "FILE", "the deploy net, instead of --run");
    DeclareWeights(flags, &options_.target.weights);
    flags.Bind(&options_.out, "out", "FILE", "the pack to write, such as model.trainer").Required();
    flags.Bind(
        &options_.labels, "labels", "FILE",
        "the names of the classes, one per line; or a folder with a subfolder for each class");
    flags.Bind(&options_.target.batch, "batch", "N", "images per pass; with --run: 1 by default")
        .Range(1);
    flags.Bind(&shape_, "shape", "C,H,W",
               "for --run, if the data of the run is not there: the shape of an image");
    DeclareForce(flags, &replace_);
    DeclareImages(flags, &options_.images);
    DeclareNetChanges(flags, &options_.target.model);
  }

  int Run() override {
    if (!options_.images.list.empty()) {
      throw Error(ErrorCode::kUsage, "--list names images for 'trainer predict'; leave it out");
    }
    if (!options_.out.ends_with(".trainer")) {
      throw Error(ErrorCode::kUsage,
                  EscapeControl(Join("--out=", options_.out, ": the name must end in .trainer")));
    }
    if (!shape_.empty()) options_.target.shape = ParseItemShape(shape_);
    RefuseToReplace(options_.out, replace_);
    const std::string text = WriteModelPack(options_);  // before the log line begins
    LOG(INFO) << EscapeControl(text);
    return 0;
  }

 private:
  PackOptions options_;
  std::string shape_;
  bool replace_ = false;
};

const RegisterVerb<PackModel> kPackVerb("pack");

}  // namespace
}  // namespace trainer

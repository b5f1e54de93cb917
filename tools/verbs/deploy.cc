#include <glog/logging.h>

#include <iostream>

#include "flag_groups.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/cli/verb.h"
#include "trainer/inference/export/export_net.h"
#include "trainer/inference/pack/model_pack.h"
#include "trainer/run/device.h"

namespace trainer {
namespace {

// Writes the net for inference: without data and loss layers, with an Input layer.
class Deploy final : public Verb {
 public:
  void Declare(FlagSet& flags) override {
    DeclareModel(flags, &net_);
    flags.Bind(&out_, "out", "FILE", "where to write; default: print it");
    DeclareForce(flags, &replace_);
    flags.Bind(&options_.batch, "batch", "N", "number of items per pass").Range(1);
    flags.Bind(&shape_, "shape", "C,H,W",
               "shape of one item; default: the shape of the net's data");
    flags.BindList(&options_.spec.outputs, "output", "BLOBS",
                   "blobs to keep; default: the input of the loss with the largest loss_weight");
    DeclareNetChanges(flags, &net_);
  }

  int Run() override {
    const NetSpec spec = LoadModel(net_);
    options_.spec.state = MakeNetState(caffe::TEST, net_.state);
    if (!shape_.empty()) options_.shape = ParseItemShape(shape_);
    const ExportedNet exported = ExportNet(spec, *MakeDevice(), options_);
    if (out_.empty()) {
      std::cout << ToText(exported);
      return 0;
    }
    RefuseToReplace(out_, replace_);
    WriteWhole(out_, ToText(exported));
    LOG(INFO) << EscapeControl(Join("Wrote ", out_, ": ", exported.net.layer_size(), " layers"));
    if (!exported.preprocessing.empty()) LOG(INFO) << exported.preprocessing;
    return 0;
  }

 private:
  NetSource net_;
  ExportOptions options_;
  std::string out_, shape_;
  bool replace_ = false;
};

const RegisterVerb<Deploy> kDeploy("deploy");

}  // namespace
}  // namespace trainer

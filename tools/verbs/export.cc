#include <glog/logging.h>

#include "flag_groups.h"
#include "onnx_flags.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/checkpoint/export_weights.h"
#include "trainer/cli/verb.h"
#include "trainer/inference/pack/model_pack.h"
#include "trainer/inference/run_weights.h"

namespace trainer {
namespace {

// Writes a trained net, or its weights alone, in a format that other programs read.
class Export final : public Verb {
 public:
  void Declare(FlagSet& flags) override {
    flags_ = &flags;
    flags.Bind(&target_.model.file, "model", "FILE", "the deploy net, or a pack");
    DeclareWeights(flags, &target_.weights);
    flags.Bind(&target_.run, "run", "DIR",
               "the folder of a run, instead of --model and --weights: its net, the weights of its "
               "best test and its labels");
    flags
        .Bind(&out_, "out", "FILE",
              "where to write: the net as FILE.onnx, or the weights as FILE.safetensors, .npz, .h5 "
              "or .caffemodel")
        .Required();
    DeclareForce(flags, &replace_);
    DeclareOnnx(flags, &onnx_, &target_.model);
  }

  int Run() override {
    const bool is_onnx = out_.ends_with(".onnx");
    if (!is_onnx && !IsNamedAsWeights(out_)) {
      throw Error(ErrorCode::kUsage,
                  EscapeControl(Join("--out=", out_,
                                     ": the name must end in .onnx, .safetensors, .npz, .h5 or "
                                     ".caffemodel")));
    }
    if (is_onnx) {
      RefuseToReplace(out_, replace_);
      RefuseToReplace(out_ + ".data", replace_);  // holds the weights of a model over 2 GiB
      ExportOnnxFile(onnx_, target_, out_);
      return 0;
    }
    RefuseOnnxFlags(*flags_, out_);
    UsePack(&target_.model, &target_.weights);
    if (target_.run.empty() == target_.weights.empty()) {
      throw Error(
          ErrorCode::kUsage,
          target_.run.empty()
              ? "'trainer export' needs either --weights=FILE, --run=DIR or a pack as --model"
              : "--run and --weights cannot both be given: each names weights; leave one "
                "of them out");
    }
    if (!target_.run.empty()) target_.weights = {ChooseRunWeights(target_.run, "Exporting")};
    RequireFiles(target_.weights);
    RefuseToReplace(out_, replace_);
    const std::string text = ExportWeights(target_.weights, target_.model.file, out_);
    LOG(INFO) << EscapeControl(text);
    return 0;
  }

 private:
  const FlagSet* flags_ = nullptr;
  PredictionTargetOptions target_;
  OnnxFlags onnx_;
  std::string out_;
  bool replace_ = false;
};

const RegisterVerb<Export> kExport("export");

}  // namespace
}  // namespace trainer

#include "flag_groups.h"
#include "onnx_flags.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/cli/verb.h"

namespace trainer {
namespace {

// Writes a trained net as a model that other programs run.
class Export final : public Verb {
 public:
  void Declare(FlagSet& flags) override {
    flags.Bind(&target_.model.file, "model", "FILE", "the deploy net");
    DeclareWeights(flags, &target_.weights);
    flags.Bind(&target_.run, "run", "DIR",
               "the folder of a run, instead of --model and --weights: its net, its best weights "
               "and its labels");
    flags.Bind(&out_, "out", "FILE", "the file to write: FILE.onnx").Required();
    DeclareForce(flags, &replace_);
    DeclareNetChanges(flags, &target_.model);
    DeclareOnnx(flags, &onnx_);
  }

  int Run() override {
    if (!out_.ends_with(".onnx")) {
      throw Error(ErrorCode::kUsage,
                  EscapeControl(Join("--out=", out_, ": the name must end in .onnx")));
    }
    RefuseToReplace(out_, replace_);
    ExportOnnxFile(onnx_, target_, out_);
    return 0;
  }

 private:
  PredictionTargetOptions target_;
  OnnxFlags onnx_;
  std::string out_;
  bool replace_ = false;
};

const RegisterVerb<Export> kExport("export");

}  // namespace
}  // namespace trainer

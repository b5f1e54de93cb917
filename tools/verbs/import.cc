#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "flag_groups.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/cli/verb.h"
#include "trainer/run/model_import/import_model.h"

namespace trainer {
namespace {

// Converts a model in the format ONNX to a net and weights.
class Import final : public Verb {
 public:
  void Declare(FlagSet& flags) override {
    flags.BindWords(&models_, 1);
    flags.Bind(&options_.out, "out", "FILE", "where to write the net").Required();
    flags
        .Bind(&options_.weights, "weights", "FILE",
              "where to write the weights: FILE.caffemodel, .h5, .safetensors or .npz")
        .Required();
    flags.Bind(&options_.shape, "shape", "C,H,W", "shape of one item; default: the model's");
    flags
        .Bind(&options_.batch, "batch", "N",
              "items per pass, if the model leaves this free; with --train, items of a training "
              "batch")
        .Range(1);
    flags
        .Bind(&options_.pixels, "pixels", "KIND",
              "how images enter: as the model takes them, or as this program prepares them; "
              "default: raw, with --train torchvision")
        .Choices("raw|torchvision");
    flags.Bind(&options_.train, "train", "", "also write a net and a solver that fine-tune");
    flags
        .Bind(&options_.tune.classes, "classes", "N",
              "with --train: number of classes; default: lines of the labels.txt next to --source")
        .Range(2);
    flags.Bind(&options_.tune.source, "source", "SET", "with --train: the training set");
    flags.Bind(&options_.tune.test_source, "test_source", "SET",
               "with --train: the test set; default: the one next to the training set");
    DeclareForce(flags, &options_.replace);
  }

  int Run() override {
    if (models_.empty()) {
      throw Error(ErrorCode::kUsage, "'trainer import' needs MODEL, the .onnx file");
    }
    options_.model = models_[0];
    std::istringstream lines(ImportModel(options_));
    for (std::string line; std::getline(lines, line);) std::cout << EscapeControl(line) << "\n";
    return 0;
  }

 private:
  std::vector<std::string> models_;
  ImportModelOptions options_;
};

const RegisterVerb<Import> kImport("import");

}  // namespace
}  // namespace trainer

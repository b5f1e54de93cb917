#include <limits>

#include "flag_groups.h"
#include "table_flags.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/cli/verb.h"
#include "trainer/inference/export/export_net.h"
#include "trainer/inference/inference_net.h"
#include "trainer/inference/predict/class_names.h"
#include "trainer/inference/predict/classifier.h"
#include "trainer/inference/predict/prediction_run.h"
#include "trainer/inference/predict/prediction_target.h"
#include "trainer/run/device.h"

namespace trainer {
namespace {

// Prints the best classes of image files or the answers for the rows of a table, or writes them to
// a file. Returns the exit code of the first image that cannot be read, after all others were
// classified.
class Predict final : public Verb {
 public:
  void Declare(FlagSet& flags) override {
    flags.BindWords(&images_, std::numeric_limits<size_t>::max());
    flags.Bind(&target_.model.file, "model", "FILE", "the net");
    DeclareWeights(flags, &target_.weights);
    flags.Bind(&target_.run, "run", "DIR",
               "the folder of a run, instead of --model and --weights; its labels are used, too");
    flags.Bind(
        &class_names_, "labels", "FILE",
        "the names of the classes, one per line; or a folder with a subfolder for each class");
    flags.Bind(&run_.top, "top", "N", "how many classes to print for each image").Range(1);
    flags.Bind(&output_, "output", "BLOB",
               "the blob with the scores; default: the only output of the net");
    flags
        .Bind(&target_.batch, "batch", "N",
              "images per pass; default: the first dimension of the net's input; with --run: 32")
        .Range(1);
    flags.Bind(&shape_, "shape", "C,H,W",
               "for --run, if the data of the run is not there: the shape of an image");
    flags.Bind(&run_.out, "out", "FILE",
               "write a row per image to this .csv, .jsonl or .npz file instead of printing; "
               "of a table: to .csv, .npz, .npy or .h5");
    DeclareForce(flags, &replace_);
    flags
        .Bind(&resume_, "resume", "auto",
              "if --out exists, continue after its last complete row, for the same images in the "
              "same order")
        .Choices("auto")
        .IfBare("auto");
    DeclareImages(flags, &image_flags_);
    DeclareTable(flags, &table_);
    DeclareJson(flags, &run_.json);
    DeclareNetChanges(flags, &target_.model);
    DeclareDevice(flags, &device_);
  }

  int Run() override {
    static_cast<void>(ChooseDevice(device_));  // before the files are read
    const bool is_table = NamesTable(images_, table_);
    CheckFlags(is_table);
    ImagePaths paths(images_, image_flags_.list);
    const PredictionTarget target = ResolvePredictionTarget(target_);
    const std::unique_ptr<Device> device = MakeDevice(ChooseDevice(device_, target.net));
    InferenceNet net(target.net, *device, {.state = target.state});
    if (is_table) {
      PredictTableFile(
          net, target,
          {.table = images_[0], .output = output_, .out = run_.out, .replace = replace_}, table_);
      return 0;
    }
    Classifier classifier(net.net(), output_, ResolvePreprocessOptions(image_flags_, target.net));
    run_.names = class_names_.empty()
                     ? ReadClassNamesOfRun(target.class_names, classifier.classes())
                     : ReadClassNames(class_names_, classifier.classes());
    net.LoadAllWeights(target.weights);
    return RunPredictions(classifier, paths, run_);
  }

 private:
  // Throws kUsage for flags that contradict each other, and kCannotCreate if --out exists.
  void CheckFlags(bool is_table) {
    if (images_.empty() && image_flags_.list.empty()) {
      throw Error(ErrorCode::kUsage,
                  "'trainer predict' needs images, or --list=FILE with their paths");
    }
    if (!shape_.empty()) target_.shape = ParseItemShape(shape_);
    run_.continues = !resume_.empty();
    if (!is_table) {
      CheckPredictionOptions(run_);
    } else if (run_.json || run_.continues || !image_flags_.list.empty()) {
      throw Error(ErrorCode::kUsage, "--json, --resume and --list are for images, not for a table");
    }
    if (!run_.out.empty() && !run_.continues) RefuseToReplace(run_.out, replace_);
  }

  std::vector<std::string> images_;
  PredictionTargetOptions target_;
  PredictionRunOptions run_;
  std::string class_names_, output_, shape_, resume_;
  ImageInputFlags image_flags_;
  TableFlags table_;
  bool replace_ = false;
  DeviceOptions device_;
};

const RegisterVerb<Predict> kPredict("predict", {"classify"});

}  // namespace
}  // namespace trainer

#include <glog/logging.h>

#include <limits>

#include "flag_groups.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
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

// Classifies image files and prints the best classes of each, or writes them to a file. Returns the
// exit code of the first image that cannot be read, after all others were classified.
class Predict final : public Verb {
 public:
  void Declare(FlagSet& flags) override {
    flags.BindWords(&images_, std::numeric_limits<size_t>::max());
    flags.Bind(&target_.model.file, "model", "FILE", "the net");
    DeclareWeights(flags, &target_.weights);
    flags.Bind(&target_.run, "run", "DIR",
               "the folder of a run, instead of --model and --weights; its labels are used, too");
    flags.Bind(&class_names_, "labels", "FILE", "the names of the classes, one per line");
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
               "write a row per image to this .csv, .jsonl or .npz file instead of printing");
    DeclareForce(flags, &replace_);
    flags
        .Bind(&resume_, "resume", "auto",
              "if --out exists, continue after its last complete row, for the same images in the "
              "same order")
        .Choices("auto")
        .IfBare("auto");
    DeclareImages(flags, &image_flags_);
    DeclareJson(flags, &run_.json);
    DeclareNetChanges(flags, &target_.model);
    DeclareDevice(flags, &device_);
  }

  int Run() override {
    static_cast<void>(ChooseDevice(device_));  // before the files are read
    CheckFlags();
    ImagePaths paths(images_, image_flags_.list);
    const PredictionTarget target = ResolvePredictionTarget(target_);
    const std::unique_ptr<Device> device = MakeDevice(ChooseDevice(device_, target.net));
    InferenceNet net(target.net, *device, {.state = target.state});
    Classifier classifier(net.net(), output_, ResolvePreprocessOptions(image_flags_, target.net));
    run_.names = NamesOfClasses(target, classifier.classes());
    net.LoadWeights(target.weights);
    return RunPredictions(classifier, paths, run_);
  }

 private:
  // Throws kUsage for flags that contradict each other, and kCannotCreate if --out exists.
  void CheckFlags() {
    if (images_.empty() && image_flags_.list.empty()) {
      throw Error(ErrorCode::kUsage,
                  "'trainer predict' needs images, or --list=FILE with their paths");
    }
    if (!shape_.empty()) target_.shape = ParseItemShape(shape_);
    run_.continues = !resume_.empty();
    CheckPredictionOptions(run_);
    if (!run_.out.empty() && !run_.continues) RefuseToReplace(run_.out, replace_);
  }

  // Returns the names in the file of --labels, or in the file of the run if it fits the net.
  std::vector<std::string> NamesOfClasses(const PredictionTarget& target, int64_t classes) const {
    if (!class_names_.empty()) return ReadClassNames(class_names_, classes);
    if (target.class_names.empty()) return {};
    try {
      return ReadClassNames(target.class_names, classes);
    } catch (const Error& error) {
      LOG(WARNING) << EscapeControl(
          Join("the classes have no names: ", error.what(), "; give the names with --labels=FILE"));
      return {};
    }
  }

  std::vector<std::string> images_;
  PredictionTargetOptions target_;
  PredictionRunOptions run_;
  std::string class_names_, output_, shape_, resume_;
  ImageInputFlags image_flags_;
  bool replace_ = false;
  DeviceOptions device_;
};

const RegisterVerb<Predict> kPredict("predict", {"classify"});

}  // namespace
}  // namespace trainer

#include <iostream>

#include "flag_groups.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/cli/verb.h"
#include "trainer/inference/export/export_net.h"
#include "trainer/inference/inspect/inspection.h"
#include "trainer/inference/predict/class_names.h"
#include "trainer/inference/predict/classifier.h"
#include "trainer/inference/predict/prediction_target.h"
#include "trainer/run/device.h"

namespace trainer {
namespace {

// Writes a page that shows what a net computes from one image.
class InspectVerb final : public Verb {
 public:
  void Declare(FlagSet& flags) override {
    flags.BindWords(&images_, 1);
    flags.Bind(&target_.model.file, "model", "FILE", "the net");
    DeclareWeights(flags, &target_.weights);
    flags.Bind(&target_.run, "run", "DIR",
               "the folder of a run, instead of --model and --weights; its labels are used, too");
    flags.Bind(&out_, "out", "FILE", "the page to write, ending in .html").Required();
    DeclareForce(flags, &replace_);
    flags.Bind(
        &class_names_, "labels", "FILE",
        "the names of the classes, one per line; or a folder with a subfolder for each class");
    flags.Bind(&options_.top, "top", "N", "how many answers to show").Range(1);
    flags.Bind(&options_.output, "output", "BLOB",
               "the blob with the scores; default: the only output of the net");
    flags.BindList(&options_.layers, "layers", "LIST",
                   "show the outputs of these layers only: names separated by commas, or a pattern "
                   "between slashes: /conv.*/");
    flags.Bind(&shape_, "shape", "C,H,W",
               "for --run, if the data of the run is not there: the shape of an image");
    DeclarePreprocessing(flags, &image_flags_);
    DeclareNetChanges(flags, &target_.model);
    DeclareDevice(flags, &device_);
  }

  int Run() override {
    static_cast<void>(ChooseDevice(device_));  // reports a missing device before the files are read
    CheckFlags();
    const PredictionTarget target = ResolvePredictionTarget(target_);
    const std::unique_ptr<Device> device = MakeDevice(ChooseDevice(device_, target.net));
    InferenceNet net(target.net, *device,
                     {.state = target.state, .memory = BufferReuse::kSeparate});
    const int64_t classes = ChooseScores(net.net(), options_.output).value.shape.Count(1);
    options_.names = class_names_.empty() ? ReadClassNamesOfRun(target.class_names, classes)
                                          : ReadClassNames(class_names_, classes);
    options_.preprocess = ResolvePreprocessOptions(image_flags_, target.net);
    options_.preprocess.oversample = false;
    net.LoadAllWeights(target.weights);
    const InspectionPage page = Inspect(net, options_);
    WriteWhole(out_, ToHtml(page));
    std::cout << EscapeControl(Join(out_, ": ", Counted(page.outputs.size(), "blob"),
                                    ", best answer ", page.answers[0].first, " (",
                                    page.answers[0].second, ")"))
              << "\n";
    return 0;
  }

 private:
  // Throws kUsage for flags that contradict each other, and kCannotCreate if --out exists.
  void CheckFlags() {
    if (images_.empty()) throw Error(ErrorCode::kUsage, "'trainer inspect' needs an image");
    if (IsDirectory(images_[0])) {
      throw Error(
          ErrorCode::kUsage,
          EscapeControl(Join(images_[0], " is a folder; 'trainer inspect' shows one image")));
    }
    if (!out_.ends_with(".html")) {
      throw Error(ErrorCode::kUsage, Join("--out=", out_, " must end in .html"));
    }
    RefuseToReplace(out_, replace_);
    if (!shape_.empty()) target_.shape = ParseItemShape(shape_);
    target_.batch = 1;
    target_.verb = "inspect";
    options_.image = images_[0];
  }

  std::vector<std::string> images_;
  PredictionTargetOptions target_;
  InspectionOptions options_;
  std::string class_names_, shape_, out_;
  ImageInputFlags image_flags_;
  bool replace_ = false;
  DeviceOptions device_;
};

const RegisterVerb<InspectVerb> kInspectVerb("inspect");

}  // namespace
}  // namespace trainer

#include <iostream>
#include <limits>

#include "flag_groups.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/cli/verb.h"
#include "trainer/inference/inference_net.h"
#include "trainer/inference/predict/class_names.h"
#include "trainer/inference/predict/classifier.h"
#include "trainer/run/device.h"

namespace trainer {
namespace {

// Classifies image files and prints the best classes of each. Returns the exit code of the first
// image that cannot be read, after all others were classified.
class Predict final : public Verb {
 public:
  void Declare(FlagSet& flags) override {
    flags.BindWords(&images_, std::numeric_limits<size_t>::max());
    DeclareModel(flags, &net_);
    DeclareWeights(flags, &weights_, true);
    flags.Bind(&class_names_, "labels", "FILE", "the names of the classes, one per line");
    flags.Bind(&top_, "top", "N", "how many classes to print for each image").Range(1);
    flags.Bind(&output_, "output", "BLOB",
               "the blob with the scores; default: the only output of the net");
    DeclareImages(flags, &image_flags_);
    DeclareJson(flags, &json_);
    DeclareNetChanges(flags, &net_);
    DeclareDevice(flags, &device_);
  }

  int Run() override {
    static_cast<void>(ChooseDevice(device_));  // before the files are read
    const std::vector<std::string> paths = ImagePaths(images_, image_flags_.list);
    if (paths.empty()) {
      throw Error(ErrorCode::kUsage,
                  "'trainer predict' needs images, or --list=FILE with their paths");
    }
    RequireFiles(weights_);
    const NetSpec spec = LoadNet(net_);
    const std::unique_ptr<Device> device = MakeDevice(ChooseDevice(device_, spec));
    InferenceNet net(spec, *device, {.state = MakeNetState(caffe::TEST, net_.state)});
    Classifier classifier(net.net(), output_, ResolvePreprocessOptions(image_flags_, spec));
    std::vector<std::string> names;
    if (!class_names_.empty()) names = ReadClassNames(class_names_, classifier.classes());
    net.LoadWeights(weights_);
    Json list = Json::Array();
    int exit_code = 0;
    classifier.Run(paths, [&](const ImageScores& image) {
      if (exit_code == 0) exit_code = image.exit_code;
      if (json_) {
        list.Push(ToJson(image, static_cast<size_t>(top_), names));
      } else if (image.error.empty()) {
        std::cout << ToText(image, static_cast<size_t>(top_), names);
      } else {
        std::cout.flush();
        std::cerr << "error: " << image.error << "\n";
      }
    });
    if (json_) std::cout << Json::Object().Set("images", std::move(list)).ToString();
    return exit_code;
  }

 private:
  std::vector<std::string> images_, weights_;
  NetSource net_;
  std::string class_names_, output_;
  int top_ = 5;
  ImageInputFlags image_flags_;
  bool json_ = false;
  DeviceOptions device_;
};

const RegisterVerb<Predict> kPredict("predict", {"classify"});

}  // namespace
}  // namespace trainer

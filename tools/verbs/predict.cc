#include <glog/logging.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <limits>

#include "flag_groups.h"
#include "trainer/base/error/error.h"
#include "trainer/base/log/progress.h"
#include "trainer/base/log/status_line.h"
#include "trainer/base/text/json.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"
#include "trainer/base/thread/threads.h"
#include "trainer/cli/verb.h"
#include "trainer/inference/export/export_net.h"
#include "trainer/inference/inference_net.h"
#include "trainer/inference/predict/class_names.h"
#include "trainer/inference/predict/classifier.h"
#include "trainer/inference/predict/prediction_file.h"
#include "trainer/inference/predict/prediction_target.h"
#include "trainer/run/device.h"

namespace trainer {
namespace {

// Prints the JSON object {"images": [...]} image by image, because there may be millions.
class JsonPrinter {
 public:
  void Add(Json image) {
    const std::string text =
        Json::Object().Set("images", Json::Array().Push(std::move(image))).ToString();
    std::cout << (is_first_ ? kHead : ",")
              << std::string_view(text).substr(kHead.size(),
                                               text.size() - kHead.size() - kTail.size());
    is_first_ = false;
  }
  void Finish() { std::cout << kTail; }

 private:
  static constexpr std::string_view kHead = "{\n  \"images\": [", kTail = "\n  ]\n}\n";
  bool is_first_ = true;
};

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
    flags.Bind(&top_, "top", "N", "how many classes to print for each image").Range(1);
    flags.Bind(&output_, "output", "BLOB",
               "the blob with the scores; default: the only output of the net");
    flags
        .Bind(&target_.batch, "batch", "N",
              "images per pass; default: the first dimension of the net's input; with --run: 32")
        .Range(1);
    flags.Bind(&shape_, "shape", "C,H,W",
               "for --run, if the data of the run is not there: the shape of an image");
    flags.Bind(&out_, "out", "FILE",
               "write a row per image to this .csv or .jsonl file instead of printing");
    DeclareForce(flags, &replace_);
    flags
        .Bind(&resume_, "resume", "auto",
              "if --out exists, continue after its last complete row, for the same images in the "
              "same order")
        .Choices("auto")
        .IfBare("auto");
    DeclareImages(flags, &image_flags_);
    DeclareJson(flags, &json_);
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
    names_ = NamesOfClasses(target, classifier.classes());
    net.LoadWeights(target.weights);
    if (out_.empty()) {
      Print(classifier, paths);
    } else {
      Write(classifier, paths);
    }
    return counts_.exit_code;
  }

 private:
  using Clock = std::chrono::steady_clock;

  // Throws kUsage for flags that contradict each other, and kCannotCreate if --out exists.
  void CheckFlags() {
    if (images_.empty() && image_flags_.list.empty()) {
      throw Error(ErrorCode::kUsage,
                  "'trainer predict' needs images, or --list=FILE with their paths");
    }
    if (!shape_.empty()) target_.shape = ParseItemShape(shape_);
    if (out_.empty()) {
      if (resume_.empty()) return;
      throw Error(ErrorCode::kUsage, "--resume continues a file; name it with --out=FILE");
    }
    RequirePredictionFormat(out_);
    if (json_) {
      throw Error(ErrorCode::kUsage,
                  "--json prints the answers and --out writes them to a file; leave one of them "
                  "out (--out=FILE.jsonl writes JSON)");
    }
    if (resume_.empty()) RefuseToReplace(out_, replace_);
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

  void Count(const ImageScores& image) {
    ++counts_.rows;
    if (image.error.empty()) return;
    ++counts_.bad;
    if (counts_.exit_code == 0) counts_.exit_code = image.exit_code;
  }

  static void PrintError(const ImageScores& image) {
    std::cout.flush();
    std::cerr << "error: " << image.error << "\n";
  }

  // Logs how fast this command classified `images` images.
  void LogSpeed(int64_t images, Clock::time_point start) const {
    const double seconds =
        std::max(std::chrono::duration<double>(Clock::now() - start).count(), 1e-9);
    const double rate = static_cast<double>(images) / seconds;
    LOG(INFO) << EscapeControl(
        Join("Classified ", images, images == 1 ? " image in " : " images in ", Fixed(seconds, 2),
             " s: ", Fixed(rate, rate < 10 ? 1 : 0), " images/s",
             out_.empty() ? "" : Join("; ", out_, " has ", counts_.rows, " rows"),
             counts_.bad == 0 ? "" : Join("; ", counts_.bad, " could not be read")));
  }

  void Print(Classifier& classifier, ImagePaths& paths) {
    JsonPrinter json;
    const Clock::time_point start = Clock::now();
    classifier.Run(paths, AvailableThreads(), [&](const ImageScores& image) {
      Count(image);
      if (json_) {
        json.Add(ToJson(image, static_cast<size_t>(top_), names_));
      } else if (image.error.empty()) {
        std::cout << ToText(image, static_cast<size_t>(top_), names_);
      } else {
        PrintError(image);
      }
    });
    if (json_) json.Finish();
    LogSpeed(counts_.rows, start);
  }

  void Write(Classifier& classifier, ImagePaths& paths) {
    const PredictionFileOptions options = {out_, static_cast<size_t>(top_), names_};
    const std::unique_ptr<PredictionFile> file =
        resume_.empty() ? std::make_unique<PredictionFile>(options, classifier.classes())
                        : PredictionFile::Resume(options, classifier.classes(), paths, &counts_);
    const int64_t before = counts_.rows;
    if (before > 0) {
      LOG(INFO) << EscapeControl(Join("Resuming ", out_, " after ", before, " rows"));
    }
    const Clock::time_point start = Clock::now();
    {
      Progress progress("Classifying", "images", 0);
      progress.Skip(before);
      classifier.Run(paths, AvailableThreads(), [&](const ImageScores& image) {
        Count(image);
        file->Add(image);
        progress.Add(1);
        if (image.error.empty()) return;
        if (StatusLine::IsShown()) {
          progress.Say("error: " + image.error);
        } else {
          PrintError(image);
        }
      });
    }
    file->Finish();
    LogSpeed(counts_.rows - before, start);
  }

  std::vector<std::string> images_, names_;
  PredictionTargetOptions target_;
  std::string class_names_, output_, shape_, out_, resume_;
  int top_ = 5;
  ImageInputFlags image_flags_;
  bool json_ = false, replace_ = false;
  DeviceOptions device_;
  PredictionFile::Written counts_;  // of all rows of --out, or of all printed images
};

const RegisterVerb<Predict> kPredict("predict", {"classify"});

}  // namespace
}  // namespace trainer

#include <algorithm>
#include <deque>
#include <iostream>
#include <numeric>

#include "device_flags.h"
#include "picture_flags.h"
#include "shared_flags.h"
#include "trainer/base/text/json.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"
#include "trainer/cli/verb.h"
#include "trainer/inference/predict/class_names.h"

namespace trainer {
namespace {

struct Answer {
  std::string path;
  std::string error;  // why there are no scores
  int code = 0;
  std::vector<float> scores;  // the sum over the picture's parts
  int parts = 0;              // that are in the sum
};

// Shows pictures to a net, several at once, and hands out answers in order.
class Classifier {
 public:
  Classifier(Net& net, const std::string& output, const PreprocessOptions& options)
      : net_(net),
        input_(ImageInput(net)),
        output_(ChooseOutput(output)),
        reader_(input_.value.shape, options) {}

  int64_t classes() const { return output_.Count() / output_.shape[0]; }

  // Calls `take` for every picture, in order.
  template <class Take>
  void Run(const std::vector<std::string>& paths, const Take& take) {
    for (const std::string& path : paths) {
      Answer& answer = answers_.emplace_back();
      answer.path = path;
      try {
        std::vector<float> parts;
        reader_.Read(path, &parts);
        Queue(parts);
      } catch (const Error& error) {
        answer.error = error.what();
        answer.code = static_cast<int>(error.code());
      }
      HandOut(take);
    }
    Pass();
    HandOut(take);
  }

 private:
  Tensor ChooseOutput(const std::string& name) const {
    std::vector<std::string> names;
    for (const NetOutput& output : net_.outputs()) {
      names.push_back(output.name);
      const bool chosen = name.empty() ? net_.outputs().size() == 1 : name == output.name;
      if (!chosen) continue;
      const Shape& shape = output.value.shape;
      if (shape.Rank() > 1 && shape[0] == input_.value.shape[0]) return output.value;
      throw Error(ErrorCode::kConfig,
                  Join("output '", EscapeControl(name), "' has the shape ", shape.ToString(),
                       "; it must have one row of scores for each of the ", input_.value.shape[0],
                       " images"));
    }
    throw Error(ErrorCode::kUsage,
                Join(name.empty() ? "the net has several outputs; choose one with --output"
                                  : Join("--output: the net has no output '", EscapeControl(name),
                                         "'.", DidYouMean(name, names)),
                     ". It has ", EscapeControl(JoinList(names))));
  }

  void Queue(const std::vector<float>& parts) {
    const auto item = static_cast<size_t>(input_.value.shape.Count(1));
    for (size_t at = 0; at < parts.size(); at += item) {
      batch_.insert(batch_.end(), parts.begin() + static_cast<std::ptrdiff_t>(at),
                    parts.begin() + static_cast<std::ptrdiff_t>(at + item));
      owners_.push_back(&answers_.back());
      if (static_cast<int64_t>(owners_.size()) == input_.value.shape[0]) Pass();
    }
  }

  // Runs the net on what is queued.
  void Pass() {
    if (owners_.empty()) return;
    batch_.resize(static_cast<size_t>(input_.value.Count()), 0.0f);
    net_.WritePlain(batch_, input_.value);
    net_.Forward();
    scores_.resize(static_cast<size_t>(output_.Count()));
    net_.ReadPlain(output_, scores_);
    const auto row = static_cast<size_t>(classes());
    for (size_t i = 0; i < owners_.size(); ++i) {
      Answer& answer = *owners_[i];
      answer.scores.resize(row, 0.0f);
      for (size_t c = 0; c < row; ++c) answer.scores[c] += scores_[i * row + c];
      ++answer.parts;
    }
    owners_.clear();
    batch_.clear();
  }

  template <class Take>
  void HandOut(const Take& take) {
    while (!answers_.empty()) {
      Answer& first = answers_.front();
      if (first.error.empty() && first.parts < reader_.crops()) return;
      for (float& score : first.scores) score /= static_cast<float>(first.parts);
      take(first);
      answers_.pop_front();
    }
  }

  Net& net_;
  InputBlob input_;
  Tensor output_;
  ImagePreprocessor reader_;
  std::deque<Answer> answers_;   // not handed out yet
  std::vector<float> batch_;     // parts for the next pass
  std::vector<Answer*> owners_;  // of these parts
  std::vector<float> scores_;
};

// The classes with the highest scores; numbers that are none come last.
std::vector<size_t> Best(const std::vector<float>& scores, size_t count) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto key = [&](size_t c) {
    return scores[c] == scores[c] ? scores[c] : -std::numeric_limits<float>::infinity();
  };
  std::ranges::stable_sort(order, std::greater(), key);
  order.resize(std::min(order.size(), count));
  return order;
}

void PrintAnswers(const Answer& answer, size_t top, const std::vector<std::string>& names) {
  if (!answer.error.empty()) {
    std::cout.flush();
    std::cerr << "error: " << answer.error << "\n";
    return;
  }
  std::cout << "---------- Prediction for " << EscapeControl(answer.path) << " ----------\n";
  for (const size_t c : Best(answer.scores, top)) {
    std::cout << Fixed(static_cast<double>(answer.scores[c]), 4) << " - \""
              << EscapeControl(names.empty() ? Join("class ", c) : names[c]) << "\"\n";
  }
}

Json AnswersJson(const Answer& answer, size_t top, const std::vector<std::string>& names) {
  Json json = Json::Object().Set("image", answer.path);
  if (!answer.error.empty()) return json.Set("error", answer.error).Set("exit_code", answer.code);
  Json list = Json::Array();
  for (const size_t c : Best(answer.scores, top)) {
    Json one = Json::Object().Set("class", c);
    if (!names.empty()) one.Set("name", names[c]);
    list.Push(one.Set("score", answer.scores[c]));
  }
  return json.Set("answers", std::move(list));
}

class Classify final : public Verb {
 public:
  VerbDoc Doc() const override {
    VerbDoc doc = {
        .task = VerbTask::kUse,
        .summary = "classify images with a trained net",
        .usage = "trainer classify --model=FILE --weights=FILES [flags] PICTURE...",
        .text =
            "The net must have one Input layer; 'trainer deploy' makes such a net from a training "
            "net. Images are JPEG, PNG, PGM or PPM files. They are decoded to channels blue, "
            "green, red (gray if the input has one channel), resized, and scaled as in training: "
            "'trainer deploy' writes these settings into a comment of the net's file. The flags "
            "--mean, --mean_value and --scale override the comment; give them the values of the "
            "training net's transform_param. The input's first dimension is the number of images "
            "per pass.\n"
            "If an image cannot be read, an error for it goes to stderr and the other images are "
            "still classified. The exit code is then that of the first such error.",
        .examples =
            "trainer classify --model=deploy.prototxt --weights=net.caffemodel \\\n"
            "    --labels=names.txt cat.jpg dog.jpg\n"
            "trainer classify --model=deploy.prototxt --weights=net.caffemodel \\\n"
            "    --mean_value=104,117,123 --oversample --list=files.txt --json",
        .flags = {{.name = "model", .value = "FILE", .help = "the net", .required = true},
                  WeightsFlag(true),
                  {.name = "labels",
                   .value = "FILE",
                   .help = "the names of the classes, one per line"},
                  {.name = "top",
                   .kind = FlagKind::kWhole,
                   .value = "N",
                   .fallback = "5",
                   .help = "how many classes to print for each image",
                   .min = 1},
                  {.name = "output",
                   .value = "BLOB",
                   .help = "the blob with the scores; default: the only output of the net"}},
        .max_words = std::numeric_limits<int>::max()};
    const std::vector<Flag> pictures = PictureFlags();
    doc.flags.insert(doc.flags.end(), pictures.begin(), pictures.end());
    for (const Flag& flag : WithDeviceFlags({JsonFlag(), LevelFlag(), StageFlag(), SetFlag()})) {
      doc.flags.push_back(flag);
    }
    return doc;
  }

  int Run(const Flags& flags) override {
    static_cast<void>(ChooseDevice(flags));  // before the files are read
    const std::vector<std::string> paths = PicturesOf(flags);
    if (paths.empty()) {
      throw Error(ErrorCode::kUsage,
                  "'trainer classify' needs images, or --list=FILE with their paths");
    }
    RequireFiles(flags.List("weights"));
    const NetSpec spec = ModelOf(flags);
    const std::unique_ptr<Device> device = MakeDevice(ChooseDevice(flags, spec));
    ParamStore params(*device);
    NetOptions options;
    options.state = NetStateOf(flags, caffe::TEST);
    options.log = false;
    Net net(spec, options, *device, params);
    Classifier classifier(net, flags.Text("output"), PictureOptionsOf(flags, spec));
    std::vector<std::string> names;
    if (flags.Has("labels")) names = ReadClassNames(flags.Text("labels"), classifier.classes());
    Net* const nets[] = {&net};
    LoadWeights(flags, nets);
    const auto top = static_cast<size_t>(flags.Whole("top"));
    const bool json = flags.Switch("json");
    Json list = Json::Array();
    int code = 0;
    classifier.Run(paths, [&](const Answer& answer) {
      if (code == 0) code = answer.code;
      json ? static_cast<void>(list.Push(AnswersJson(answer, top, names)))
           : PrintAnswers(answer, top, names);
    });
    if (json) std::cout << Json::Object().Set("images", std::move(list)).ToString();
    return code;
  }
};

const RegisterVerb<Classify> kClassifyVerb("classify");

}  // namespace
}  // namespace trainer

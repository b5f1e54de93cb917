#include <glog/logging.h>

#include <iostream>
#include <optional>

#include "device_flags.h"
#include "reading_flags.h"
#include "shared_flags.h"
#include "test_answers.h"
#include "test_subject.h"
#include "trainer/base/atomic_file.h"
#include "trainer/base/file.h"
#include "trainer/base/json.h"
#include "trainer/base/progress.h"
#include "trainer/base/text.h"
#include "trainer/checkpoint/model_file.h"
#include "trainer/net/bad_records.h"
#include "trainer/net/load_weights.h"
#include "trainer/net/net.h"
#include "trainer/net/output_counts.h"
#include "trainer/observe/run_folder.h"
#include "verb.h"

namespace trainer {
namespace {

// Every element of every output, summed over batches.
class Scores {
 public:
  void Add(const Net& net, int batch) {
    size_t element = 0, count = 0;
    for (const NetOutput& output : net.outputs()) count += output.value.Count();
    if (batch > 0) RequireEqualCounts(sums_.size(), count);
    for (const NetOutput& output : net.outputs()) {
      host_.resize(static_cast<size_t>(output.value.Count()));
      net.ReadPlain(output.value, host_);
      for (const float value : host_) {
        if (batch == 0) sums_.push_back({output.name, 0, output.loss_weight});
        sums_[element++].sum += value;
        LOG(INFO) << Join("Batch ", batch, ", ", output.name, " = ", value);
      }
    }
  }

  void Log(int batches) const {
    for (const Sum& sum : sums_) {
      const auto mean = static_cast<float>(sum.sum / batches);
      const std::string loss = sum.loss_weight == 0 ? ""
                                                    : Join(" (* ", sum.loss_weight, " = ",
                                                           sum.loss_weight * mean, " loss)");
      LOG(INFO) << Join(sum.name, " = ", mean, loss);
    }
  }

  Json ToJson(int batches) const {
    Json list = Json::Array();
    for (const Sum& sum : sums_) {
      list.Push(Json::Object()
                    .Set("name", sum.name)
                    .Set("mean", sum.sum / batches)
                    .Set("loss_weight", sum.loss_weight));
    }
    return list;
  }

 private:
  struct Sum {
    std::string name;
    double sum = 0;
    float loss_weight = 0;
  };
  std::vector<Sum> sums_;
  std::vector<float> host_;
};

// A net whose inputs nobody fills gives numbers, but they say nothing.
void WarnOfEmptyInputs(const Net& net) {
  std::vector<std::string> zeros;
  for (int i = 0; i < net.NumLayers(); ++i) {
    const caffe::LayerParameter& layer = net.LayerAt(i).proto();
    const bool zero = layer.type() == "Input" || (layer.type() == "DummyData" &&
                                                  layer.dummy_data_param().data_filler_size() == 0);
    if (zero) zeros.insert(zeros.end(), layer.top().begin(), layer.top().end());
  }
  if (zeros.empty()) return;
  LOG(WARNING) << EscapeControl(
      Join("nothing fills ", JoinList(zeros),
           ": all zeros, so that the outputs say nothing about "
           "the weights. Give the net with its data layers; 'trainer classify' shows images to a "
           "deploy net"));
}

class Test final : public Verb {
 public:
  VerbDoc Doc() const override {
    return {
        .task = VerbTask::kTrain,
        .summary = "score trained weights on a net's test data",
        .usage = "trainer test (--model=FILE --weights=FILES | --run=DIR) [flags]",
        .text =
            "Runs the TEST phase of the net and logs each batch's outputs and, at the end, "
            "their means.\n"
            "--confusion counts which class was taken for which: the class of the highest score "
            "against the label, of the first Accuracy layer or else the first SoftmaxWithLoss. Of "
            "many classes the worst are printed; --json prints all, 'matrix' being the cells that "
            "are not 0.\n"
            "--run=DIR takes the test net and the newest weights of 'trainer train --run=DIR' and "
            "as many batches as its solver's test_iter, counts as --confusion does, and leaves "
            "confusion.json and worst.json, the images with the highest loss, in DIR, where "
            "'trainer report' finds them. Start it where the run was started.",
        .examples =
            "trainer test --model=models/lenet/train_test.prototxt \\\n"
            "    --iterations=40 --weights=run/lenet/lenet_iter_2000.caffemodel\n"
            "trainer test --model=net.prototxt --weights=net.caffemodel \\\n"
            "    --iterations=100 --confusion --labels=names.txt\n"
            "trainer test --run=runs/first",
        .flags = WithReadingFlags(WithDeviceFlags(
            {{.name = "model", .value = "FILE", .help = "the net"},
             WeightsFlag(),
             {.name = "run",
              .value = "DIR",
              .help = "the folder of a run, in place of --model and --weights"},
             {.name = "iterations",
              .kind = FlagKind::kWhole,
              .value = "N",
              .help = "how many batches (50, or of a run its test_iter)",
              .min = 1},
             {.name = "confusion",
              .kind = FlagKind::kSwitch,
              .help = "print each class's hits and what it was taken for"},
             {.name = "scores",
              .value = "BLOB",
              .help = "for --confusion: scores, classes along axis 1"},
             {.name = "label", .value = "BLOB", .help = "for --confusion: their labels"},
             {.name = "labels",
              .value = "FILE",
              .help = "for --confusion: the classes' names, one in each line"},
             BadRecordsFlag(),
             JsonFlag(),
             LevelFlag(),
             StageFlag(),
             SetFlag(),
             MemoryFlag()})),
    };
  }

  int Run(const Flags& flags) override {
    ApplyReadingFlags(flags);
    static_cast<void>(ChooseDevice(flags));  // before the files are read
    ApplyBadRecords(flags);
    const TestSubject subject = SubjectOf(flags);
    const std::unique_ptr<Device> device = MakeLoggedDevice(ChooseDevice(flags, subject.net()));
    ParamStore params(*device);
    NetOptions options;
    options.state = subject.state;
    const bool compares = flags.Switch("confusion") || !subject.folder.empty();
    options.memory = compares ? MemoryMode::kSeparate : ParseMemoryMode(flags);
    options.output_files = OutputFiles::kNew;
    Net net(subject.net(), options, *device, params);
    WarnOfEmptyInputs(net);
    std::optional<TestAnswers> answers;
    if (compares) answers.emplace(flags, net, subject.file);
    Net* const nets[] = {&net};
    WeightLoading loading(nets);
    for (const std::string& file : subject.weights) loading.Copy(ReadModel(file), file);
    loading.Finish();
    LOG(INFO) << "Running for " << subject.batches << " iterations.";
    Scores scores;
    double loss = 0;
    std::optional<Progress> progress(std::in_place, Join("Testing ", net.name()), "batches",
                                     subject.batches, Progress::InLog::kNothing);
    for (int batch = 0; batch < subject.batches; ++batch) {
      loss += net.Forward();
      CountBadRecords(net, nullptr);
      scores.Add(net, batch);
      if (answers) answers->AddBatch();
      progress->Add(1);
    }
    progress.reset();
    loss /= subject.batches;
    LOG(INFO) << Join("Loss: ", static_cast<float>(loss));
    scores.Log(subject.batches);
    Json json = Json::Object()
                    .Set("net", net.name())
                    .Set("iterations", subject.batches)
                    .Set("loss", loss)
                    .Set("outputs", scores.ToJson(subject.batches));
    if (answers) json.Set("confusion", answers->Confusion());
    if (flags.Switch("json")) std::cout << json.ToString();
    if (answers && !flags.Switch("json")) std::cout << answers->Text();
    if (!subject.folder.empty()) Keep(subject.folder, json, answers->Worst());
    return 0;
  }

 private:
  static void Keep(const std::string& folder, const Json& test, const Json& worst) {
    for (const auto& [name, json] : {std::pair(kConfusionName, &test), {kWorstName, &worst}}) {
      const std::string path = JoinPath(folder, name);
      WriteWhole(path, json->ToString());
      LOG(INFO) << "Wrote " << EscapeControl(path);
    }
  }
};

const RegisterVerb<Test> kTestVerb("test");

}  // namespace
}  // namespace trainer

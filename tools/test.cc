#include <glog/logging.h>

#include <iostream>
#include <optional>

#include "confusion_report.h"
#include "device_flags.h"
#include "shared_flags.h"
#include "trainer/base/json.h"
#include "trainer/base/text.h"
#include "trainer/net/bad_records.h"
#include "trainer/net/net.h"
#include "trainer/net/output_counts.h"
#include "trainer/predict/class_names.h"
#include "trainer/predict/label_uses.h"
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

// Which answers and labels of the net are compared.
class Comparison {
 public:
  Comparison(const Flags& flags, const Net& net) : net_(net) {
    if (flags.Has("scores") != flags.Has("label")) {
      throw Error(ErrorCode::kUsage, "--scores and --label belong together; give both blobs");
    }
    if (flags.Has("scores")) {
      scores_ = Known(flags, "scores");
      labels_ = Known(flags, "label");
      return;
    }
    const std::vector<LabelUse> uses = LabelUses(net);
    for (const char* type : {"Accuracy", "SoftmaxWithLoss"}) {
      for (const LabelUse& use : uses) {
        if (!use_ && net.LayerAt(use.layer).type() == type) use_ = use;
      }
    }
    if (use_) return;
    throw Error(ErrorCode::kConfig, {flags.Text("model")},
                "the net has neither an Accuracy nor a SoftmaxWithLoss layer, whose scores could "
                "be compared; name the blobs with --scores and --label");
  }

  // As they are after a pass.
  ScoredLabels Batch() const {
    if (!use_) return {net_.Value(scores_), net_.Value(labels_), 1, false, 0, labels_};
    return {net_.Input(use_->layer, 0),
            net_.Input(use_->layer, 1),
            use_->axis,
            use_->has_ignore,
            use_->ignore,
            use_->labels};
  }

  int64_t Classes() const {
    const ScoredLabels batch = Batch();
    return batch.axis < batch.scores.shape.Rank() ? batch.scores.shape[batch.axis] : 1;
  }

 private:
  std::string Known(const Flags& flags, const char* flag) const {
    CheckBlobs(net_, flag, {flags.Text(flag)});
    return flags.Text(flag);
  }

  const Net& net_;
  std::optional<LabelUse> use_;
  std::string scores_, labels_;  // named by flags
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
        .summary = "score trained weights on a net's test data",
        .usage = "trainer test --model=FILE --weights=FILES [flags]",
        .text =
            "Runs the TEST phase of the net and logs each batch's outputs and, at the end, "
            "their means.\n"
            "--confusion counts which class was taken for which: the class of the highest score "
            "against the label, of the first Accuracy layer or else the first SoftmaxWithLoss. Of "
            "many classes the worst are printed; --json prints all, 'matrix' being the cells that "
            "are not 0.",
        .examples =
            "trainer test --model=models/lenet/train_test.prototxt \\\n"
            "    --iterations=40 --weights=run/lenet/lenet_iter_2000.caffemodel\n"
            "trainer test --model=net.prototxt --weights=net.caffemodel \\\n"
            "    --iterations=100 --confusion --labels=names.txt",
        .flags = WithDeviceFlags(
            {{.name = "model", .value = "FILE", .help = "the net", .required = true},
             {.name = "weights",
              .value = "FILES",
              .help = ".caffemodel files, separated by commas",
              .required = true},
             IterationsFlag(),
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
             MemoryFlag()}),
    };
  }

  int Run(const Flags& flags) override {
    static_cast<void>(ChooseDevice(flags));  // before the files are read
    RequireFiles(flags.List("weights"));
    ApplyBadRecords(flags);
    const NetSpec spec = ModelOf(flags);
    const std::unique_ptr<Device> device = MakeLoggedDevice(ChooseDevice(flags, spec));
    ParamStore params(*device);
    NetOptions options;
    options.state = NetStateOf(flags, caffe::TEST);
    const bool confusion = flags.Switch("confusion");
    options.memory = confusion ? MemoryMode::kSeparate : ParseMemoryMode(flags);
    options.output_files = OutputFiles::kNew;
    Net net(spec, options, *device, params);
    WarnOfEmptyInputs(net);
    std::optional<Comparison> comparison;
    std::vector<std::string> names;
    if (confusion) {
      comparison.emplace(flags, net);
      if (flags.Has("labels")) names = ReadClassNames(flags.Text("labels"), comparison->Classes());
    }
    ConfusionMatrix matrix(confusion ? comparison->Classes() : 0);
    Net* const nets[] = {&net};
    LoadWeights(flags, nets);
    const int batches = flags.Whole("iterations");
    LOG(INFO) << "Running for " << batches << " iterations.";
    Scores scores;
    double loss = 0;
    for (int batch = 0; batch < batches; ++batch) {
      loss += net.Forward();
      CountBadRecords(net, nullptr);
      scores.Add(net, batch);
      if (confusion) AddBatch(net, comparison->Batch(), &matrix);
    }
    LOG(INFO) << Join("Loss: ", static_cast<float>(loss / batches));
    scores.Log(batches);
    if (flags.Switch("json")) {
      Json json = Json::Object()
                      .Set("net", net.name())
                      .Set("iterations", batches)
                      .Set("loss", loss / batches)
                      .Set("outputs", scores.ToJson(batches));
      if (confusion) json.Set("confusion", ConfusionJson(matrix, names));
      std::cout << json.ToString();
    } else if (confusion) {
      std::cout << ConfusionText(matrix, names);
    }
    return 0;
  }
};

const RegisterVerb<Test> kTest("test");

}  // namespace
}  // namespace trainer

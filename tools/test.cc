#include <glog/logging.h>

#include <algorithm>
#include <iostream>
#include <optional>

#include "device_flags.h"
#include "reading_flags.h"
#include "shared_flags.h"
#include "test_answers.h"
#include "test_subject.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/log/progress.h"
#include "trainer/base/text/json.h"
#include "trainer/base/text/text.h"
#include "trainer/checkpoint/model_file.h"
#include "trainer/cli/verb.h"
#include "trainer/monitor/run_folder.h"
#include "trainer/net/bad_records.h"
#include "trainer/net/load_weights.h"
#include "trainer/net/output_counts.h"
#include "trainer/net/test_nets.h"

namespace trainer {
namespace {

// Every element of every output, summed over batches.
class Scores {
 public:
  // `weight`: of the batch. With `is_rest` the batch is smaller than those before it, and an output
  // with elements for each record has fewer of them.
  void Add(const Net& net, int batch, double weight, bool is_rest) {
    size_t element = 0, count = 0;
    for (const NetOutput& output : net.outputs()) count += output.value.Count();
    if (batch > 0 && !is_rest) RequireEqualCounts(sums_.size(), count);
    for (const NetOutput& output : net.outputs()) {
      host_.resize(static_cast<size_t>(output.value.Count()));
      net.ReadPlain(output.value, host_);
      while (batch > 0 && sums_[element].name != output.name) ++element;
      for (const float value : host_) {
        if (batch == 0) sums_.push_back({output.name, 0, 0, output.loss_weight});
        sums_[element].weight += weight;
        sums_[element++].sum += value * weight;
        LOG(INFO) << Join("Batch ", batch, ", ", output.name, " = ", value);
      }
    }
  }

  // A line for each element, as Caffe logs it.
  std::vector<std::string> Lines() const {
    std::vector<std::string> lines;
    for (const Sum& sum : sums_) {
      const auto mean = static_cast<float>(sum.Mean());
      const std::string loss = sum.loss_weight == 0 ? ""
                                                    : Join(" (* ", sum.loss_weight, " = ",
                                                           sum.loss_weight * mean, " loss)");
      lines.push_back(Join(sum.name, " = ", mean, loss));
    }
    return lines;
  }

  Json ToJson() const {
    Json list = Json::Array();
    for (const Sum& sum : sums_) {
      list.Push(Json::Object()
                    .Set("name", sum.name)
                    .Set("mean", sum.Mean())
                    .Set("loss_weight", sum.loss_weight));
    }
    return list;
  }

 private:
  struct Sum {
    std::string name;
    double sum = 0, weight = 0;
    float loss_weight = 0;

    double Mean() const { return sum / weight; }
  };
  std::vector<Sum> sums_;
  std::vector<float> host_;
};

// Of data without an end, as many as Caffe's program takes.
constexpr int kBatches = 50;

// Whether a layer of the net reads records that come to an end.
bool HasRecords(const TestSubject& subject) {
  const std::vector<LayerSpec> layers = FilterLayers(subject.net(), subject.state);
  return std::ranges::any_of(layers, [](const LayerSpec& layer) {
    const std::string& type = layer.type();
    return type == "Data" || type == "ImageData" || type == "HDF5Data" || type == "MemoryData";
  });
}

int BatchesOf(const TestSubject& subject) {
  if (subject.batches != kExactPass || HasRecords(subject)) return subject.batches;
  return kBatches;
}

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
      Join("no data fills ", JoinList(zeros),
           ": the input is all zeros, so the outputs are meaningless. Give the net with its data "
           "layers; for a deploy net use 'trainer classify' with images"));
}

class Test final : public Verb {
 public:
  VerbDoc Doc() const override {
    return {
        .task = VerbTask::kTrain,
        .summary = "score trained weights on a net's test data",
        .usage = "trainer test (--model=FILE --weights=FILES | --run=DIR) [flags]",
        .text =
            "Runs the TEST phase of the net, logs the outputs of each batch and prints their "
            "means. Without --iterations, each record of the test data counts exactly once; the "
            "last batch is smaller if batch_size does not divide the number of records.\n"
            "--confusion prints a confusion matrix: the class with the highest score against the "
            "label, as in the first Accuracy layer, or else in the first SoftmaxWithLoss layer. If "
            "there are many classes, only the worst are printed; --json prints all, with the "
            "non-zero cells in 'matrix'.\n"
            "--run=DIR tests a run of 'trainer train --run=DIR': its test net with the weights of "
            "its best test, or with the newest weights if those were not kept. It prints the "
            "confusion matrix. It also writes confusion.json, and worst.json with the images of "
            "the highest loss, to DIR, and 'trainer report' shows both. Start it in the folder in "
            "which the run was started.",
        .examples =
            "trainer test --model=models/lenet/train_test.prototxt \\\n"
            "    --weights=run/lenet/lenet_iter_2000.caffemodel\n"
            "trainer test --model=net.prototxt --weights=net.caffemodel \\\n"
            "    --confusion --labels=names.txt\n"
            "trainer test --run=runs/first",
        .flags = WithReadingFlags(WithDeviceFlags(
            {{.name = "model", .value = "FILE", .help = "the net"},
             WeightsFlag(),
             {.name = "run",
              .value = "DIR",
              .help = "the folder of a run, instead of --model and --weights"},
             {.name = "iterations",
              .kind = FlagKind::kWhole,
              .value = "N",
              .help = "number of batches; default: one pass over all records, or 50 batches if the "
                      "data has no end",
              .min = 1},
             {.name = "confusion",
              .kind = FlagKind::kSwitch,
              .help =
                  "print for each class the correct answers and the classes it was confused with"},
             {.name = "scores",
              .value = "BLOB",
              .help = "for --confusion: blob with the scores, classes along axis 1"},
             {.name = "label", .value = "BLOB", .help = "for --confusion: blob with the labels"},
             {.name = "labels",
              .value = "FILE",
              .help = "for --confusion: the names of the classes, one per line"},
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
    json_ = flags.Switch("json");
    const TestSubject subject = SubjectOf(flags);
    const std::unique_ptr<Device> device = MakeLoggedDevice(ChooseDevice(flags, subject.net()));
    ParamStore params(*device);
    NetOptions options;
    options.state = subject.state;
    const bool compares = flags.Switch("confusion") || !subject.folder.empty();
    options.memory = compares ? MemoryMode::kSeparate : ParseMemoryMode(flags);
    options.output_files = OutputFiles::kNew;
    TestNets nets(subject.net(), options, *device, params, BatchesOf(subject));
    WarnOfEmptyInputs(nets.net());
    std::optional<TestAnswers> answers;
    if (compares) answers.emplace(flags, nets, subject.file);
    Net* const loaded[] = {&nets.net()};
    WeightLoading loading(loaded);
    for (const std::string& file : subject.weights) loading.Copy(ReadModel(file), file);
    loading.Finish();
    const Json json = Score(nets, subject, answers ? &*answers : nullptr);
    if (flags.Switch("json")) std::cout << json.ToString();
    if (answers && !flags.Switch("json")) std::cout << answers->Text();
    if (!subject.folder.empty()) Keep(subject.folder, json, answers->Worst());
    return 0;
  }

 private:
  // Prints the means where they are the only result.
  Json Score(TestNets& nets, const TestSubject& subject, TestAnswers* answers) const {
    const int batches = nets.batches() + (nets.rest() == nullptr ? 0 : 1);
    TellOfData(nets, subject);
    LOG(INFO) << "Running for " << batches << " iterations.";
    Scores scores;
    double loss = 0, all = 0;
    std::optional<Progress> progress(std::in_place, Join("Testing ", nets.net().name()), "batches",
                                     batches, Progress::InLog::kNothing);
    for (int batch = 0; batch < batches; ++batch) {
      const bool is_rest = batch == nets.batches();
      Net& net = is_rest ? *nets.rest() : nets.net();
      const double weight =
          nets.rest() == nullptr
              ? 1
              : static_cast<double>(is_rest ? nets.rest_records() : nets.batch_records());
      loss += net.Forward() * weight;
      all += weight;
      CountBadRecords(net, nullptr);
      scores.Add(net, batch, weight, is_rest);
      if (answers != nullptr) answers->AddBatch(is_rest);
      progress->Add(1);
    }
    progress.reset();
    loss /= all;
    LOG(INFO) << Join("Loss: ", static_cast<float>(loss));
    for (const std::string& line : scores.Lines()) LOG(INFO) << line;
    Json json = Json::Object()
                    .Set("net", nets.net().name())
                    .Set("iterations", batches)
                    .Set("records", RecordsOf(nets))
                    .Set("loss", loss)
                    .Set("outputs", scores.ToJson());
    if (answers != nullptr) {
      json.Set("confusion", answers->Confusion());
    } else if (!json_) {
      for (const std::string& line : scores.Lines()) std::cout << EscapeControl(line) << '\n';
    }
    return json;
  }

  // That a test reads; 0: unknown.
  static int64_t RecordsOf(const TestNets& nets) {
    return nets.batches() * nets.batch_records() + nets.rest_records();
  }

  static void TellOfData(const TestNets& nets, const TestSubject& subject) {
    const TestData& data = nets.data();
    if (subject.batches > 0) {
      const std::string misfit = MisfitOfTest(data, subject.batches, "--iterations");
      if (!misfit.empty()) LOG(WARNING) << EscapeControl(misfit);
    } else if (data.records > 0 && RecordsOf(nets) == data.records) {
      LOG(INFO) << EscapeControl(
          Join("One pass over the ", data.records, " records of layer '", data.layer, "'"));
    }
    if (!subject.solver || data.batch < 1) return;
    const int64_t own = int64_t{subject.solver->proto.test_iter(0)} * data.batch;
    if (own == 0 || own == RecordsOf(nets)) return;
    LOG(WARNING) << "the tests during the run read " << own << " records (test_iter "
                 << subject.solver->proto.test_iter(0) << ", batches of " << data.batch
                 << "), so their results differ from this test of " << RecordsOf(nets)
                 << " records";
  }

  static void Keep(const std::string& folder, const Json& test, const Json& worst) {
    for (const auto& [name, json] : {std::pair(kConfusionName, &test), {kWorstName, &worst}}) {
      const std::string path = JoinPath(folder, name);
      WriteWhole(path, json->ToString());
      LOG(INFO) << "Wrote " << EscapeControl(path);
    }
  }

  bool json_ = false;
};

const RegisterVerb<Test> kTestVerb("test");

}  // namespace
}  // namespace trainer

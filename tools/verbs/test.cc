#include <iostream>

#include "flag_groups.h"
#include "trainer/base/text/text.h"
#include "trainer/cli/verb.h"
#include "trainer/inference/evaluate/evaluation.h"
#include "trainer/inference/evaluate/evaluation_target.h"
#include "trainer/run/device.h"
#include "trainer/storage/cursor.h"

namespace trainer {
namespace {

constexpr size_t kReportedImages = 24;  // fills rows of 2, 3, 4, 6, 8 and 12 on a page

// Tests a net, or a run with the weights of its best test, on the test data and prints the mean of
// each output.
class Test final : public Verb {
 public:
  void Declare(FlagSet& flags) override {
    flags.Bind(&target_.model.file, "model", "FILE", "the net");
    DeclareWeights(flags, &target_.weights);
    flags.Bind(&target_.run, "run", "DIR", "the folder of a run, instead of --model and --weights");
    flags
        .Bind(
            &iterations_, "iterations", "N",
            "number of batches; default: one pass over all records, or 50 batches if the data has "
            "no end")
        .Range(1);
    flags.Bind(&options_.confusion, "confusion", "",
               "print for each class the correct answers and the classes it was confused with");
    flags.Bind(&metrics_, "metrics", "LIST",
               "metrics to compute, such as f1,auc,mcc; none: no metrics; default: those that suit "
               "the targets (see above)");
    flags.Bind(
        &options_.predictions, "predictions", "FILE",
        "write the targets and predictions of each record to this .csv, .jsonl or .npz file");
    flags.Bind(&options_.scores, "scores", "BLOB",
               "for --confusion and --metrics: blob with the scores, classes along axis 1");
    flags.Bind(&options_.label, "label", "BLOB",
               "for --confusion and --metrics: blob with the labels");
    flags.Bind(&options_.class_names, "labels", "FILE",
               "the names of the classes or labels, one per line");
    DeclareBadRecords(flags, &bad_records_);
    DeclareJson(flags, &json_);
    DeclareNetChanges(flags, &target_.model);
    DeclareMemoryMode(flags, &memory_);
    DeclareDevice(flags, &device_);
    DeclareDbLock(flags, &db_lock_);
  }

  int Run() override {
    SetDbLock(db_lock_);
    static_cast<void>(ChooseDevice(device_));  // before the files are read
    ApplyBadRecords(bad_records_);
    const EvaluationTarget target = ResolveEvaluationTarget(target_);
    const bool is_run = !target.run.empty();
    const std::unique_ptr<Device> device = MakeLoggedDevice(ChooseDevice(device_, target.net()));
    options_.weights = target.weights;
    if (options_.class_names.empty()) options_.class_names = target.class_names;
    options_.iterations = iterations_.value_or(kExactPass);
    if (is_run) {
      options_.solver_test_iter = target.solver->proto.test_iter(0);
      options_.confusion = true;
      options_.confusion_may_lack = options_.scores.empty();
      options_.top_losses = kReportedImages;
    }
    options_.file = target.file;
    options_.curves = is_run;
    if (metrics_) options_.metrics = SplitList(*metrics_ == "none" ? "" : *metrics_);
    InferenceOptions net_options;
    net_options.state = target.state;
    const bool reads_blobs = options_.confusion || !options_.scores.empty();
    net_options.memory = reads_blobs ? BufferReuse::kSeparate : memory_;
    net_options.log = true;
    net_options.output_files = OutputFiles::kCreate;
    net_options.test_batches = ChooseTestBatches(target.net(), target.state, options_.iterations);
    InferenceNet net(target.net(), *device, net_options);
    const Evaluation evaluation = Evaluate(net, options_);
    std::cout << (json_ ? ToJson(evaluation).ToString() : ToText(evaluation));
    if (is_run) WriteEvaluation(target.run, evaluation);
    return 0;
  }

 private:
  EvaluationTargetOptions target_;
  EvaluationOptions options_;
  std::optional<int> iterations_;
  std::optional<std::string> metrics_;
  std::string bad_records_ = "stop";
  bool json_ = false;
  BufferReuse memory_ = BufferReuse::kShared;
  DeviceOptions device_;
  DbLock db_lock_ = DbLock::kAuto;
};

const RegisterVerb<Test> kTest("test");

}  // namespace
}  // namespace trainer

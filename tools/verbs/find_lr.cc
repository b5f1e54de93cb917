#include <iostream>
#include <string>

#include "flag_groups.h"
#include "run_flags.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/cli/verb.h"
#include "trainer/run/search/lr_report.h"
#include "trainer/run/search/lr_search.h"

namespace trainer {
namespace {

// Trains with a growing learning rate and suggests one from the curve of the loss.
class FindLr final : public Verb {
 public:
  void Declare(FlagSet& flags) override {
    flags.Bind(&request_.solver.file, "solver", "FILE", "the solver").Required();
    flags.Bind(&from_, "from", "RATE", "the first learning rate");
    flags.Bind(&to_, "to", "RATE", "the last learning rate");
    flags
        .Bind(&iterations_, "iterations", "N",
              "number of iterations from the first learning rate to the last")
        .Range(LrRangeTest::kFewest);
    flags.Bind(&out_, "out", "FILE",
               "also write the curve to FILE: a picture (.svg) or a table (.csv)");
    DeclareForce(flags, &force_);
    DeclareStartWeights(flags, &request_.start);
    DeclareState(flags, &request_.solver.state);
    DeclareSet(flags, &request_.solver.set);
    DeclareFreeze(flags, &request_.solver);
    DeclareBatch(flags, &request_.batch);
    DeclareMemoryMode(flags, &request_.memory_mode);
    DeclareJson(flags, &json_);
    DeclareDevice(flags, &request_.device);
    flags.BeginGroup("ranks");
    DeclareTrainingRanks(flags, &request_.ranks);
    DeclareDbLock(flags, &request_.input.db_lock);
  }

  int Run() override {
    const LrRange range = ParseLrRange(from_, to_, iterations_);
    if (!out_.empty()) RequireWritableChart();
    return FindLearningRate(request_, range, [this](const LrRangeResult& result) {
      if (!out_.empty()) WriteWhole(out_, out_.ends_with(".svg") ? ToSvg(result) : ToCsv(result));
      std::cout << (json_ ? ToJson(result).ToString() : ToText(result));
    });
  }

 private:
  // Throws if --out has another ending than .svg and .csv, or exists without --force.
  void RequireWritableChart() const {
    if (!out_.ends_with(".svg") && !out_.ends_with(".csv")) {
      throw Error(ErrorCode::kUsage,
                  Join("--out=", EscapeControl(out_),
                       " must end in .svg, for a picture, or .csv, for a table"));
    }
    RefuseToReplace(out_, force_);
  }

  TrainRequest request_;
  std::string from_ = "1e-6", to_ = "1", out_;
  int iterations_ = 200;
  bool force_ = false, json_ = false;
};

const RegisterVerb<FindLr> kFindLr("find-lr");

}  // namespace
}  // namespace trainer

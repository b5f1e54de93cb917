#include "shared_flags.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/checkpoint/model_file.h"
#include "trainer/net/load_weights.h"
#include "trainer/run/input_options.h"

namespace trainer {

Flag LevelFlag() {
  return {.name = "level",
          .kind = FlagKind::kWhole,
          .value = "N",
          .fallback = "0",
          .help = "level of the net's state, for include and exclude rules",
          .min = std::numeric_limits<int32_t>::min()};
}

Flag StageFlag() {
  return {
      .name = "stage", .value = "LIST", .help = "stages of the net's state, separated by commas"};
}

Flag PhaseFlag(std::string_view fallback) {
  return {.name = "phase",
          .value = "TRAIN|TEST",
          .fallback = fallback,
          .help = "which phase's net of --model",
          .choices = "TRAIN|TEST"};
}

Flag MemoryFlag() {
  return {.name = "memory",
          .value = "MODE",
          .fallback = "shared",
          .help = "shared, separate or poisoned",
          .hidden = true,
          .choices = "shared|separate|poisoned"};
}

Flag IterationsFlag() {
  return {.name = "iterations",
          .kind = FlagKind::kWhole,
          .value = "N",
          .fallback = "50",
          .help = "number of batches",
          .min = 1};
}

Flag WeightsFlag(bool required) {
  return {.name = "weights",
          .value = "FILES",
          .help = ".caffemodel files, separated by commas",
          .required = required};
}

Flag SeedFlag(std::string_view of) {
  return {.name = "seed", .kind = FlagKind::kWhole, .value = "N", .fallback = "1", .help = of};
}

Flag JsonFlag() {
  return {.name = "json", .kind = FlagKind::kSwitch, .help = "print JSON, for programs"};
}

Flag SetFlag() {
  return {.name = "set",
          .kind = FlagKind::kEach,
          .value = "KEY=VALUE",
          .help =
              "change a field of the solver or net; may be given several times. A solver field: "
              "base_lr=0.05. A layer's field: layer[conv1].convolution_param.num_output=64; of the "
              "TRAIN layer only: layer[data,TRAIN].data_param.batch_size=8. A list: "
              "stepvalue=[100,200]; one item: stepvalue[0]=50; an empty list: test_iter="};
}

Flag ForceFlag() {
  return {.name = "force", .kind = FlagKind::kSwitch, .help = "replace --out if it already exists"};
}

Flag BadRecordsFlag() {
  return {.name = "bad_records",
          .value = "WHAT",
          .fallback = "stop",
          .help =
              "what to do with a record that cannot be decoded: stop the run with an error "
              "(stop), or log and skip up to N such records per epoch (skip=N)"};
}

void ApplyBadRecords(const Flags& flags) { ApplyBadRecords(flags.Text("bad_records")); }

void RefuseToReplace(const Flags& flags, const std::string& path) {
  if (!Exists(path) || flags.Switch("force")) return;
  throw Error(ErrorCode::kCannotCreate, {path},
              "the file already exists; give another name, or --force to replace it");
}

void RefuseToReplace(const Flags& flags) { RefuseToReplace(flags, flags.Text("out")); }

std::string BackendName(const Flags& flags) {
  std::string name = flags.Text("backend");
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::toupper(c); });
  return name;
}

void LoadWeights(const Flags& flags, std::span<Net* const> nets) {
  if (!flags.Has("weights")) return;
  WeightLoading loading(nets);
  for (const std::string& file : flags.List("weights")) loading.Copy(ReadModel(file), file);
  loading.Finish();
}

SolverSource SolverSourceOf(const Flags& flags) {
  return {flags.Text("solver"), flags.Each("set"), StateFlagsOf(flags)};
}

SolverSpec SolverOf(const Flags& flags) { return ReadSolver(SolverSourceOf(flags)); }

NetSpec ModelOf(const Flags& flags) {
  return LoadNet({flags.Text("model"), flags.Each("set"), StateFlagsOf(flags)});
}

StateFlags StateFlagsOf(const Flags& flags) { return {flags.Whole("level"), flags.List("stage")}; }

caffe::NetState NetStateOf(const Flags& flags, caffe::Phase phase) {
  return MakeNetState(phase, StateFlagsOf(flags));
}

caffe::Phase PhaseOf(const Flags& flags) {
  return std::tolower(flags.Text("phase")[1]) == 'r' ? caffe::TRAIN : caffe::TEST;
}

MemoryMode ParseMemoryMode(const Flags& flags) { return ParseMemoryMode(flags.Text("memory")); }

MemoryMode ParseMemoryMode(const std::string& mode) {
  if (mode == "separate") return MemoryMode::kSeparate;
  return mode == "poisoned" ? MemoryMode::kPoisoned : MemoryMode::kShared;
}

}  // namespace trainer

#include "search/trial_state.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "search/search_space.h"
#include "search/trial_runner.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/random/crc32c.h"
#include "trainer/base/text/json.h"
#include "trainer/base/text/json_reader.h"
#include "trainer/base/text/parse_number.h"
#include "trainer/base/text/text.h"
#include "trainer/checkpoint/snapshot_lock.h"
#include "trainer/config/resolved_solver.h"
#include "trainer/monitor/test_score.h"

namespace trainer {
namespace {

constexpr char kSearchName[] = "search.json";
constexpr uint64_t kStateMaxBytes = 1 << 20;

// Reads a file of the folder. Throws kData if it is not a JSON object.
JsonObject ReadJson(const std::string& path) {
  std::optional<JsonObject> json = ParseJsonObject(ReadFile(path, kStateMaxBytes));
  if (json) return *json;
  throw Error(ErrorCode::kData, {path},
              "is not a file that a search wrote; remove it, and the search writes it again");
}

// Returns the content of search.json: all that decides the values and results of the trials. The
// checksum covers the fields of the solver and its nets, so that a search does not mix trials from
// before and after a change of these files.
std::string SearchText(const Grid& grid, const GridOptions& options) {
  Json set = Json::Array();
  for (const std::string& assignment : options.assignments) set.Push(assignment);
  const std::string first = ResolvedText(LoadTrial(options, grid.trials.front()));
  return Json::Object()
      .Set("solver", options.solver)
      .Set("set", std::move(set))
      .Set("seed", options.seed)
      .Set("seeds", options.seeds)
      .Set("stop", options.stops_early ? "asha" : "none")
      .Set("best_output", ScoredOutput(grid.spec.proto))
      .Set("first_trial_crc32c", Crc32cDigits(first))
      .ToString();
}

// Returns the texts that `others` lacks.
std::string OnlyIn(std::vector<std::string> texts, const std::vector<std::string>& others) {
  std::erase_if(texts, [&](const auto& text) { return std::ranges::count(others, text) > 0; });
  return JoinList(texts, " ");
}

// Returns what distinguishes two contents of search.json: "--seed 1 -> 2". Leaves long values out.
// The checksum and best_output also follow from the flags, so they count only if no flag differs.
std::string SearchDifference(const JsonObject& before, const JsonObject& now) {
  std::vector<std::string> changes;
  const auto compare = [&](const char* what, const std::string& a, const std::string& b) {
    constexpr size_t kLongest = 120;
    const auto shown = [](const std::string& value) { return value.empty() ? "none" : value; };
    if (a == b) return;
    changes.push_back(a.size() + b.size() > kLongest ? Join(what, " (long values)")
                                                     : Join(what, " ", shown(a), " -> ", shown(b)));
  };
  const std::vector<std::string> old_set = JsonTexts(before, "set"), set = JsonTexts(now, "set");
  compare("--solver", JsonText(before, "solver"), JsonText(now, "solver"));
  const std::string removed = OnlyIn(old_set, set), added = OnlyIn(set, old_set);
  const bool same_texts = removed.empty() && added.empty();
  compare("--set", same_texts ? JoinList(old_set, " ") : removed,
          same_texts ? JoinList(set, " ") : added);
  for (const std::string name : {"seed", "seeds"}) {
    const auto digits = [&](const JsonObject& json) {
      return Join(static_cast<int>(JsonNumber(json, name)));
    };
    compare(("--" + name).c_str(), digits(before), digits(now));
  }
  compare("--stop", JsonText(before, "stop"), JsonText(now, "stop"));
  if (changes.empty()) {
    compare("best_output", JsonText(before, "best_output"), JsonText(now, "best_output"));
  }
  return JoinList(changes, ", ");
}

// Returns the state that a file describes.
TrialState StateIn(const JsonObject& json) {
  TrialState state;
  state.number = static_cast<int>(JsonNumber(json, "trial"));
  state.settings = JsonTexts(json, "settings");
  state.lower_is_better = JsonFlag(json, "lower_is_better");
  state.over = JsonFlag(json, "over");
  state.diverged = JsonFlag(json, "diverged");
  state.failure = static_cast<int>(JsonNumber(json, "failure"));
  const JsonElement* const stages = JsonField(json, "stages");
  if (stages == nullptr) return state;
  for (const JsonElement& value : stages->list_value().values()) {
    const JsonObject& stage = value.struct_value();
    TrialState::Stage& read = state.stages.emplace_back();
    read.until = JsonText(stage, "until");
    const double mean = JsonNumber(stage, "mean", NAN);
    if (std::isfinite(mean)) read.mean = mean;
    read.spread = JsonNumber(stage, "spread");
  }
  return state;
}

}  // namespace

double TrialState::Cost(size_t stage) const {
  const std::optional<double>& mean = stages[stage].mean;
  if (!mean) return INFINITY;
  return lower_is_better ? *mean : -*mean;
}

std::string TrialState::Text() const {
  if (failure != 0) return Join("failed (", failure, ")");
  if (diverged) return "diverged";
  if (over) return "finished";
  return stages.empty() ? "begun" : "stopped at " + stages.back().until;
}

void SearchFolder::Begin(const Grid& grid, const GridOptions& options) const {
  std::error_code error;
  std::filesystem::create_directories(path_, error);
  if (error) {
    throw Error(ErrorCode::kCannotCreate, {path_},
                Join("cannot create this folder: ", error.message()));
  }
  LockTimes times;
  times.wait = std::chrono::minutes(1);
  times.poll = std::chrono::milliseconds(50);
  const std::string path = JoinPath(path_, kSearchName);
  const SnapshotLock lock(JoinPath(path_, "search"), times);
  const std::string text = SearchText(grid, options);
  if (IsMissing(path)) return WriteWhole(path, text);
  if (ReadFile(path, kStateMaxBytes) == text) return;
  const std::string change =
      SearchDifference(ReadJson(path), ParseJsonObject(text).value_or(JsonObject()));
  throw Error(ErrorCode::kCannotCreate, {path},
              change.empty()
                  ? "the solver or its net has changed since the search in this folder began: give "
                    "another --out, or restore these files; only --trials may differ"
                  : EscapeControl(Join("the folder has another search: ", change,
                                       "; give another --out, or the values of that search; only "
                                       "--trials may differ")));
}

std::string SearchFolder::PathOf(int number) const { return JoinPath(path_, TrialName(number)); }

bool SearchFolder::IsSearch(const std::string& path) {
  return IsDirectory(path) && Exists(JoinPath(path, kSearchName));
}

std::pair<int, std::string> SearchFolder::ReadSeedsAndOutput() const {
  const JsonObject search = ReadJson(JoinPath(path_, kSearchName));
  return {static_cast<int>(JsonNumber(search, "seeds")), JsonText(search, "best_output")};
}

std::vector<TrialState> SearchFolder::ReadAll() const {
  std::vector<TrialState> states;
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    const std::string name = entry.path().filename().string();
    std::string_view rest = name;
    int number = 0;
    if (!TakeNumber(&rest, "trial_", &number) || rest != ".json") continue;
    states.push_back(StateIn(ReadJson(entry.path().string())));
  }
  std::ranges::sort(states, {}, &TrialState::number);
  return states;
}

TrialState SearchFolder::Read(const Trial& trial) const {
  const std::string path = PathOf(trial.number) + ".json";
  TrialState state;
  if (!IsMissing(path)) state = StateIn(ReadJson(path));
  state.number = trial.number;
  state.settings = trial.settings;
  return state;
}

void SearchFolder::Write(const TrialState& state) const {
  Json settings = Json::Array(), stages = Json::Array();
  for (const std::string& setting : state.settings) settings.Push(setting);
  for (const TrialState::Stage& stage : state.stages) {
    stages.Push(Json::Object()
                    .Set("until", stage.until)
                    .Set("mean", stage.mean ? Json(*stage.mean) : Json())
                    .Set("spread", stage.spread));
  }
  WriteWhole(PathOf(state.number) + ".json", Json::Object()
                                                 .Set("trial", state.number)
                                                 .Set("settings", std::move(settings))
                                                 .Set("stages", std::move(stages))
                                                 .Set("lower_is_better", state.lower_is_better)
                                                 .Set("over", state.over)
                                                 .Set("diverged", state.diverged)
                                                 .Set("failure", state.failure)
                                                 .ToString());
}

}  // namespace trainer

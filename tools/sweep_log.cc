// What the log of a sweep's run says.

#include <fcntl.h>

#include <cerrno>
#include <charconv>
#include <fstream>
#include <map>

#include "job_scripts.h"
#include "sweep_runs.h"
#include "trainer/base/error.h"
#include "trainer/base/file.h"
#include "trainer/base/text.h"
#include "trainer/solver/test_score.h"

namespace trainer {
namespace {

// The number at the beginning of `text`.
template <class T>
std::optional<T> NumberIn(std::string_view text) {
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? std::optional<T>(value) : std::nullopt;
}

// Caffe's lines: "Iteration 20, Testing net (#0)", "Test net output #0: accuracy = 0.9", "Iteration
// 20 (5 iter/s, ...), loss = 0.3".
class LogReader {
 public:
  explicit LogReader(const std::string& best_output) : best_output_(best_output) {}

  void Read(const std::string& line) {
    result_.exit_code.reset();  // of an earlier start
    const std::string_view text = std::string_view(line).substr(AfterPrefix(line));
    if (text.starts_with(kExitLine)) {
      result_.exit_code = NumberIn<int>(text.substr(sizeof kExitLine - 1));
    } else if (text.starts_with("error: ")) {
      result_.problem = text.substr(7);
    } else if (text.starts_with("Iteration ")) {
      ReadIteration(text.substr(10));
    } else if (text.starts_with("    Test net output #") && in_first_test_) {
      ReadOutput(text);
    }
  }

  SweepResult Result() {
    EndTest();
    result_.begun = true;
    return result_;
  }

 private:
  // "I1123 00:13:19.123456  1234 log_observer.cc:27] "
  static size_t AfterPrefix(const std::string& line) {
    const bool logged = line.size() > 5 && line.find_first_of("IWE") == 0 &&
                        line.find_first_not_of("0123456789", 1) == 5;
    const size_t end = logged ? line.find("] ") : std::string::npos;
    return end == std::string::npos ? 0 : end + 2;
  }

  void ReadIteration(std::string_view text) {
    EndTest();
    const std::optional<int> iter = NumberIn<int>(text);
    if (!iter) return;
    result_.iter = *iter;
    in_first_test_ = text.find("Testing net (#0)") != std::string_view::npos;
    const size_t loss = text.find(", loss = ");
    if (loss != std::string_view::npos) result_.loss = NumberIn<float>(text.substr(loss + 9));
  }

  void ReadOutput(std::string_view text) {
    const size_t colon = text.find(": "), sign = text.find(" = ");
    if (colon == std::string_view::npos || sign == std::string_view::npos || sign < colon) return;
    const std::optional<float> value = NumberIn<float>(text.substr(sign + 3));
    names_.emplace_back(text.substr(colon + 2, sign - colon - 2));
    if (value) values_.emplace(names_.back(), *value);
  }

  // After the last output of a test.
  void EndTest() {
    in_first_test_ = false;
    if (names_.empty()) return;
    const TestScore score = ScoreOf(best_output_, names_);
    const auto value = values_.find(score.output);
    if (value != values_.end()) {
      result_.output = score.output;
      result_.lower_is_better = score.lower_is_better;
      result_.last = SweepResult::Score{value->second, result_.iter};
      const bool first = !result_.best || result_.best->value != result_.best->value;
      if (first || score.Better(value->second, result_.best->value)) result_.best = result_.last;
    }
    names_.clear();
    values_.clear();
  }

  const std::string best_output_;
  SweepResult result_;
  bool in_first_test_ = false;
  std::vector<std::string> names_;  // of the outputs of a test
  std::map<std::string, float> values_;
};

}  // namespace

bool SweepResult::IsOver() const {
  return exit_code == 0 || exit_code == static_cast<int>(ErrorCode::kDiverged);
}

std::string SweepResult::State() const {
  if (!begun) return "not begun";
  if (!exit_code) return "running or killed";
  if (*exit_code == 0) return "finished";
  if (*exit_code == static_cast<int>(ErrorCode::kDiverged)) return "diverged";
  if (*exit_code == static_cast<int>(ErrorCode::kStopped)) return "stopped";
  return Join("failed (", *exit_code, ")");
}

SweepResult ReadResult(const SweepRun& run, const std::string& best_output) {
  if (IsMissing(run.log)) return {};
  static_cast<void>(FileSize(run.log));  // whose errors say more than a stream's
  LogReader reader(best_output);
  std::ifstream log(run.log);
  for (std::string line; std::getline(log, line);) reader.Read(line);
  return reader.Result();
}

void NoteExit(const SweepRun& run, int code) {
  FileOps& ops = FileOps::Posix();
  FileHandle file(ops, ops.Open(run.log, O_WRONLY | O_APPEND | O_CLOEXEC, 0666));
  const std::string line = Join(kExitLine, code, "\n");
  const bool written = file.get() >= 0 && ops.Write(file.get(), line.data(), line.size()) ==
                                              static_cast<ssize_t>(line.size());
  if (!written || file.Close() != 0) {
    ThrowFileError(FileUse::kOutput, "write to a log", run.log, errno);
  }
}

}  // namespace trainer

#include "rescue.h"

#include <charconv>

#include "jobs/shell_quote.h"
#include "trainer/base/file/file.h"
#include "trainer/base/process/command.h"
#include "trainer/base/process/own_process.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// The answer of a busy controller must not take longer than the time that is asked for.
constexpr std::chrono::seconds kKillWaitTimeout{3};

// Returns the time between SIGTERM and SIGKILL that Slurm gives the job; no time outside of Slurm.
SolverOptions::KillWait QueryKillWait(const SchedulerAccess& access) {
  if (CurrentJob(access).system != BatchSystem::kSlurm) return {};
  const auto time = ReadKillWait(access.run({"scontrol", "show", "config"}, kKillWaitTimeout).out);
  return {time, Join("Slurm kills the job ", time.count(), " s after SIGTERM: KillWait")};
}

// Whether the word is the flag `name`, with or without its value.
bool IsFlag(const std::string& word, std::string_view name) {
  const size_t dashes = word.starts_with("--") ? 2 : word.starts_with('-') ? 1 : 0;
  const std::string_view rest = std::string_view(word).substr(dashes);
  return dashes > 0 && rest.starts_with(name) &&
         (rest.size() == name.size() || rest[name.size()] == '=');
}

// Returns the word as a shell would need it. ShellQuote refuses control characters, so a word with
// them is shown with escapes instead.
std::string ShownWord(const std::string& word) {
  const std::string escaped = EscapeControl(word);
  return escaped == word ? ShellQuote(word) : escaped;
}

// Returns the words as a command line without --resume, --snapshot, --weights and --reset and their
// values. The line ends with a blank.
std::string WithoutStart(const std::vector<std::string>& words) {
  std::string command;
  for (size_t i = 0; i < words.size(); ++i) {
    bool starts = false;
    for (const char* name : {"resume", "snapshot", "weights", "reset"}) {
      if (!IsFlag(words[i], name)) continue;
      starts = true;
      const bool has_value = words[i].find('=') != std::string::npos;
      if (!has_value && i + 1 < words.size() && !words[i + 1].starts_with('-')) ++i;
      break;
    }
    if (!starts) command += ShownWord(words[i]) + " ";
  }
  return command;
}

}  // namespace

std::vector<std::string> RescueFolders(const std::string& given, const SchedulerAccess& access) {
  std::vector<std::string> folders;
  if (!given.empty()) folders.push_back(AbsolutePath(given));
  for (const char* variable : {"SLURM_TMPDIR", "TMPDIR"}) {
    const std::string folder = access.variable(variable);
    if (!folder.empty()) folders.push_back(AbsolutePath(folder));
  }
  return folders;
}

SolverOptions::Rescue MakeRescueOptions(const std::string& folder, const SchedulerAccess& access) {
  SolverOptions::Rescue rescue;
  if (!folder.empty() && !IsDirectory(folder)) {
    throw Error(ErrorCode::kCannotCreate, {AbsolutePath(folder)},
                "the folder for a rescued snapshot (--rescue_dir) does not exist; create it "
                "(mkdir -p)");
  }
  rescue.folders = RescueFolders(folder, access);
  rescue.resume_command = [](const std::string& state) {
    return ResumeCommand(CommandLine(), state);
  };
  rescue.kill_wait = [access] { return QueryKillWait(access); };
  return rescue;
}

std::chrono::seconds ReadKillWait(const std::string& out) {
  constexpr std::chrono::seconds kUsual{30};
  constexpr std::string_view kName = "\nKillWait";
  const std::string text = "\n" + out;
  const size_t at = text.find(kName);
  const size_t number = at == std::string::npos ? at : text.find_first_of("0123456789", at);
  if (number == std::string::npos || number > text.find('\n', at + 1)) return kUsual;
  int64_t seconds = 0;
  const char* const last = text.data() + text.size();
  if (std::from_chars(text.data() + number, last, seconds).ec != std::errc()) return kUsual;
  return std::chrono::seconds(seconds);
}

std::string ResumeCommand(const std::vector<std::string>& words, const std::string& state) {
  return WithoutStart(words) + "--snapshot=" + ShownWord(state);
}

std::string AutoResumeCommand(const std::vector<std::string>& words) {
  return WithoutStart(words) + "--resume=auto";
}

}  // namespace trainer

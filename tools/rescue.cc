#include "rescue.h"

#include <charconv>

#include "batch_job.h"
#include "trainer/base/file/file.h"
#include "trainer/base/process/command.h"
#include "trainer/base/process/own_process.h"
#include "trainer/base/text/text.h"
#include "trainer/run/jobs/shell_quote.h"

namespace trainer {
namespace {

// A controller that is busy may not cost the time that is asked about.
constexpr std::chrono::seconds kQuestion{3};

KillWait AskKillWait() {
  if (ReadBatchJob().system != BatchSystem::kSlurm) return {};
  const auto time = ReadKillWait(RunCommand({"scontrol", "show", "config"}, kQuestion).out);
  return {time, Join("Slurm kills the job ", time.count(), " s after SIGTERM: KillWait")};
}

// Whether the word is the flag `name`, with its value or before it.
bool IsFlag(const std::string& word, std::string_view name) {
  const size_t dashes = word.starts_with("--") ? 2 : word.starts_with('-') ? 1 : 0;
  const std::string_view rest = std::string_view(word).substr(dashes);
  return dashes > 0 && rest.starts_with(name) &&
         (rest.size() == name.size() || rest[name.size()] == '=');
}

// As the shell takes it; ShellQuote refuses control characters, which are shown as escapes here.
std::string ShownWord(const std::string& word) {
  const std::string escaped = EscapeControl(word);
  return escaped == word ? ShellQuote(word) : escaped;
}

// The words without the flags that say where the run starts, and a blank.
std::string WithoutStart(const std::vector<std::string>& words) {
  std::string command;
  for (size_t i = 0; i < words.size(); ++i) {
    bool starts = false;
    for (const char* name : {"resume", "snapshot", "weights"}) {
      if (!IsFlag(words[i], name)) continue;
      starts = true;
      if (words[i].find('=') == std::string::npos) ++i;
      break;
    }
    if (!starts) command += ShownWord(words[i]) + " ";
  }
  return command;
}

}  // namespace

Flag RescueFlag() {
  return {.name = "rescue_dir",
          .value = "DIR",
          .help =
              "folder for the last snapshot if it cannot be written to its own folder. The run "
              "first retries until the job's time limit, or Slurm's KillWait after SIGTERM, is "
              "near (for one minute if both are unknown). If this folder also fails, it tries "
              "$SLURM_TMPDIR and $TMPDIR"};
}

std::vector<std::string> RescueFolders(const std::string& given) {
  std::vector<std::string> folders;
  if (!given.empty()) folders.push_back(AbsolutePath(given));
  for (const char* variable : {"SLURM_TMPDIR", "TMPDIR"}) {
    const std::string folder = EnvironmentVariable(variable);
    if (!folder.empty()) folders.push_back(AbsolutePath(folder));
  }
  return folders;
}

RescueOptions RescueOptionsOf(const Flags& flags) {
  RescueOptions rescue;
  const std::string& folder = flags.Text("rescue_dir");
  if (!folder.empty() && !IsDirectory(folder)) {
    throw Error(ErrorCode::kCannotCreate, {AbsolutePath(folder)},
                "the folder for a rescued snapshot (--rescue_dir) does not exist; create it "
                "(mkdir -p)");
  }
  rescue.folders = RescueFolders(folder);
  rescue.resume_command = [](const std::string& state) {
    return ResumeCommand(CommandLine(), state);
  };
  rescue.kill_wait = AskKillWait;
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

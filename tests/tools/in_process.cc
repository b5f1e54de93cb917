#include "in_process.h"

#include <fcntl.h>
#include <gflags/gflags.h>
#include <glog/logging.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <utility>

#include "main.h"
#include "support/temp_folder.h"
#include "trainer/base/log/log.h"
#include "trainer/base/log/terminal.h"
#include "trainer/base/text/text.h"
#include "trainer/cli/flag_set.h"
#include "trainer/input/bad_records.h"
#include "trainer/storage/cursor.h"

namespace trainer {
namespace {

// Redirects a descriptor of the process to a file during its lifetime.
class Redirection {
 public:
  Redirection(int descriptor, const std::string& path)
      : descriptor_(descriptor), before_(dup(descriptor)) {
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    dup2(file, descriptor_);
    close(file);
  }
  ~Redirection() {
    dup2(before_, descriptor_);
    close(before_);
  }
  Redirection(const Redirection&) = delete;
  Redirection& operator=(const Redirection&) = delete;

 private:
  int descriptor_, before_;
};

// Sets environment variables during its lifetime.
class Environment {
 public:
  explicit Environment(const std::vector<std::string>& variables) {
    for (const std::string& variable : variables) {
      const size_t equals = variable.find('=');
      const std::string name = variable.substr(0, equals);
      const char* const value = std::getenv(name.c_str());
      before_.emplace_back(name,
                           value == nullptr ? std::nullopt : std::optional(std::string(value)));
      setenv(name.c_str(), variable.substr(equals + 1).c_str(), 1);
    }
  }
  ~Environment() {
    for (const auto& [name, value] : before_) {
      if (value) {
        setenv(name.c_str(), value->c_str(), 1);
      } else {
        unsetenv(name.c_str());
      }
    }
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  std::vector<std::pair<std::string, std::optional<std::string>>> before_;
};

// Restores the blocked signals of the thread. A verb that removes its temporary files on a signal
// leaves the signals blocked, and programs that later tests start would inherit that.
class SignalMask {
 public:
  SignalMask() { pthread_sigmask(SIG_SETMASK, nullptr, &before_); }
  ~SignalMask() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalMask(const SignalMask&) = delete;
  SignalMask& operator=(const SignalMask&) = delete;

 private:
  sigset_t before_;
};

void Flush() {
  std::cout.flush();
  std::fflush(stdout);
  std::fflush(stderr);
  google::FlushLogFiles(google::INFO);
}

// Throws for a command that starts processes from /proc/self/exe, which is the test program here.
void RequireStartsNoProcess(const std::vector<std::string>& arguments) {
  const std::string verb = arguments.empty() ? "" : arguments[0];
  // Other verbs print what their --ranks or --gpu would do.
  if (verb != "sweep" && verb != "train" && verb != "find-lr" && verb != "bench-comm") return;
  for (size_t i = 0; i < arguments.size(); ++i) {
    FlagText flag;
    const bool is_flag = SplitFlag(arguments[i], &flag);
    const bool takes_next = is_flag && !flag.has_value && i + 1 < arguments.size();
    const std::string& value = takes_next ? arguments[i + 1] : flag.value;
    const bool has_ranks = is_flag && flag.name == "ranks" && std::atoi(value.c_str()) > 1;
    const bool has_gpus = is_flag && flag.name == "gpu" && value.find(',') != std::string::npos;
    if (verb != "sweep" && !has_ranks && !has_gpus) continue;
    throw std::invalid_argument(
        Join("RunHere: '", JoinList(arguments, " "),
             "' would start this test program again, as its child: use RunProgram"));
  }
}

}  // namespace

Outcome RunHere(const std::vector<std::string>& arguments, const RunOptions& options) {
  RequireStartsNoProcess(arguments);
  const TempFolder outputs;
  const std::filesystem::path before = std::filesystem::current_path();
  Outcome outcome;
  EXPECT_TRUE(options.launcher.empty() && options.memory_limit == 0 && options.file_limit == 0 &&
              options.stdout_path.empty() && options.stderr_path.empty() && !options.as_nobody &&
              !options.emulated_gpu && !options.in_step)
      << "this run needs a process";
  const Environment environment(options.env);
  const SignalMask signals;
  InitLogging("trainer");  // sets flags once, which every run starts with
  const gflags::FlagSaver flags;
  Flush();
  {
    const Redirection out(STDOUT_FILENO, outputs / "out"), err(STDERR_FILENO, outputs / "err");
    std::filesystem::current_path(options.folder);
    outcome.exit_code = RunCommandLine(arguments);
    Flush();
    std::cout.clear();
  }
  std::filesystem::current_path(before);
  LogDetails(false);
  SetMaxBadRecords(-1);
  SetDbLock(DbLock::kAuto);
  SetColorChoice(ColorChoice::kAuto);
  outcome.out = ReadText(outputs / "out");
  outcome.err = ReadText(outputs / "err");
  return outcome;
}

}  // namespace trainer

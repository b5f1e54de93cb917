// Implements the command line program.

#include "main.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <iostream>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "trainer/base/error/error_collector.h"
#include "trainer/base/file/own_file.h"
#include "trainer/base/log/log.h"
#include "trainer/base/log/terminal.h"
#include "trainer/base/text/text.h"
#include "trainer/cli/common_flags.h"
#include "trainer/cli/verb.h"
#include "trainer/parallel/failure.h"
#include "trainer/storage/fault_guard.h"

namespace trainer {

// Returns the text of tools/help/<name>.txt, or "" if the file does not exist. CMake generates its
// definition.
std::string_view HelpFile(std::string_view name);

namespace {

// Returns whether the standard output is a pipe whose reader wants no more, as `head` does.
bool ReaderHasLeft() {
  pollfd output = {STDOUT_FILENO, POLLOUT, 0};
  return poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0;
}

// Parses and runs the command, and prints help if it asks for that. Returns the verb's exit code.
// Throws the verb's errors, and kIo if the standard output fails while its reader still waits.
int Run(const std::vector<std::string>& arguments) {
  std::signal(SIGPIPE, SIG_IGN);  // applies to every output, also to help
  VerbRegistry::Get().SetHelpFiles(HelpFile);
  const Command command = ParseCommand(arguments);
  int code = 0;
  if (command.verb == nullptr) {
    std::cout << command.print;
  } else {
    ApplyCommonFlags(command.flags->values());
    InitLogging("trainer");
    code = command.verb->Run();
  }
  std::cout.flush();
  if (!std::cout && !ReaderHasLeft())
    throw Error(ErrorCode::kIo, "cannot write to the standard output");
  return code;
}

// Prints an error to stderr, after the rank's number if there are several ranks.
void PrintError(const std::string& message) {
  constexpr size_t kLongest = 4000;  // names from files have no length limit
  std::fprintf(stderr, "%s %s%s%s\n", Painted(Color::kRed, "error:", STDERR_FILENO).c_str(),
               RankPrefix().c_str(), message.substr(0, kLongest).c_str(),
               message.size() > kLongest ? "..." : "");
}

// Prints one error and returns its exit code. With several ranks, only the first that fails prints
// its error.
int ReportError(ErrorCode error, const std::string& message) {
  std::cout.flush();
  int code = static_cast<int>(error);
  if (MayReportFailure(&code)) PrintError(message);
  return code;
}

// Prints a line for each error of the group, at most 50. The first decides the exit code.
int ReportErrors(const ErrorGroup& group) {
  constexpr size_t kMost = 50;
  const size_t count = group.all().size();
  std::cout.flush();
  int code = static_cast<int>(group.code());
  if (!MayReportFailure(&code)) return code;
  for (size_t i = 0; i < std::min(count, kMost); ++i) PrintError(group.all()[i].what());
  if (count > kMost) PrintError(Join("and ", count - kMost, " more"));
  return code;
}

// Returns whether the system refused to create a thread.
bool IsThreadLimitError(const std::exception& error) {
  const auto* const of_system = dynamic_cast<const std::system_error*>(&error);
  return of_system != nullptr && of_system->code() == std::errc::resource_unavailable_try_again;
}

// Prints `line` and ends the process with `code`. This is the last resort for a memory-mapped
// database that was cut or damaged, which checks at opening cannot see. It makes only calls that a
// signal handler may make.
void EndOnMapFault(const char* line, size_t bytes, ErrorCode code) {
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line, bytes);
  RemoveOwnFiles();
  _exit(static_cast<int>(code));
}

}  // namespace

int RunCommandLine(const std::vector<std::string>& arguments) {
  try {
    return Run(arguments);
  } catch (const ErrorGroup& group) {
    return ReportErrors(group);
  } catch (const Error& e) {
    return ReportError(e.code(), e.what());
  } catch (const PeerFailed& e) {
    return e.code();
  } catch (const std::bad_alloc&) {
    return ReportError(
        ErrorCode::kResource,
        "out of host memory: lower batch_size; 'trainer plan' shows what uses the memory");
  } catch (const std::exception& e) {
    if (IsThreadLimitError(e)) {
      return ReportError(ErrorCode::kResource,
                         "cannot create another thread: raise the limit of memory (ulimit -v), of "
                         "processes (ulimit -u) or of the job");
    }
    return ReportError(ErrorCode::kInternal,
                       Join("internal error, please report it: ", EscapeControl(e.what())));
  }
}

}  // namespace trainer

// Weak, because cli_test links this file and has a main of its own.
[[gnu::weak]] int main(int argc, char** argv) {
  trainer::InstallFaultHandler(trainer::EndOnMapFault);
  return trainer::LeaveWorld(
      trainer::RunCommandLine(std::vector<std::string>(argv + 1, argv + argc)));
}

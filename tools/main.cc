// The program.

#include <unistd.h>

#include <string>
#include <vector>

#include "command_line.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/own_file.h"
#include "trainer/cli/verb.h"
#include "trainer/parallel/failure.h"
#include "trainer/storage/fault_guard.h"

namespace trainer {
namespace {

// Prints `line` and ends the process with `code`. This is the last resort for a memory-mapped
// database that was cut or damaged, which checks at opening cannot see. It makes only calls that a
// signal handler may make.
void EndOnMapFault(const char* line, size_t bytes, ErrorCode code) {
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line, bytes);
  RemoveOwnFiles();
  _exit(static_cast<int>(code));
}

}  // namespace
}  // namespace trainer

int main(int argc, char** argv) {
  trainer::VerbRegistry::Get().SetHelpFiles(trainer::HelpFile);
  trainer::InstallFaultHandler(trainer::EndOnMapFault);
  return trainer::LeaveWorld(
      trainer::RunCommandLine(std::vector<std::string>(argv + 1, argv + argc)));
}

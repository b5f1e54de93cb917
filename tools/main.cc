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

// The last resort for a memory-mapped database that was cut or damaged: checks at opening cannot
// see that. Only what a signal handler may call.
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

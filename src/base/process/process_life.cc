#include "trainer/base/process/process_life.h"

#include <cerrno>
#include <csignal>
#include <fstream>
#include <sstream>
#include <vector>

#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Returns the fields of /proc/<pid>/stat that follow "pid (name)", beginning with the state. The
// name may contain anything, also parentheses.
std::vector<std::string> StatFields(pid_t pid) {
  std::ifstream file(Join("/proc/", pid, "/stat"));
  std::string line;
  std::getline(file, line);
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return {};
  std::istringstream rest(line.substr(name_end + 1));
  std::vector<std::string> fields;
  for (std::string field; rest >> field;) fields.push_back(field);
  return fields;
}

}  // namespace

bool ProcessHasEnded(pid_t pid) {
  if (kill(pid, 0) != 0 && errno == ESRCH) return true;
  const std::vector<std::string> fields = StatFields(pid);
  return !fields.empty() && (fields[0] == "Z" || fields[0] == "X");
}

std::string ProcessStart(pid_t pid) {
  constexpr size_t kStart = 19;  // field 22 of the line
  const std::vector<std::string> fields = StatFields(pid);
  return fields.size() > kStart ? fields[kStart] : "";
}

}  // namespace trainer

#include "trainer/base/process_life.h"

#include <cerrno>
#include <csignal>
#include <fstream>
#include <string>

#include "trainer/base/text.h"

namespace trainer {

bool ProcessHasEnded(pid_t pid) {
  if (kill(pid, 0) != 0 && errno == ESRCH) return true;
  // "4711 (name) Z ...": the name may hold anything, parentheses too.
  std::ifstream file(Join("/proc/", pid, "/stat"));
  std::string line;
  std::getline(file, line);
  const size_t end = line.rfind(") ");
  return end != std::string::npos && (line[end + 2] == 'Z' || line[end + 2] == 'X');
}

}  // namespace trainer

#include "trainer/base/process/host_info.h"

#include <unistd.h>

#include <fstream>

#include "trainer/base/text/text.h"

namespace trainer {

std::string HostName() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "";
}

std::string ProcessorName() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (!line.starts_with("model name")) continue;
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) return EscapeControl(line.substr(colon + 2));
  }
  return "unknown";
}

size_t InstalledMemory() {
  return static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace trainer

#include "machine_facts.h"

#include <dnnl.h>
#include <unistd.h>

#include <fstream>
#include <vector>

#include "trainer/base/random/crc32c.h"
#include "trainer/base/text/text.h"

namespace trainer {

std::string ProcessorName() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (!line.starts_with("model name")) continue;
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) return EscapeControl(line.substr(colon + 2));
  }
  return "unknown";
}

std::string OneDnnVersion() {
  const dnnl_version_t& version = *dnnl_version();
  const char* runtime = version.cpu_runtime == DNNL_RUNTIME_OMP   ? "OpenMP"
                        : version.cpu_runtime == DNNL_RUNTIME_TBB ? "TBB"
                        : version.cpu_runtime == DNNL_RUNTIME_SEQ ? "no"
                                                                  : "unknown";
  return Join(version.major, ".", version.minor, ".", version.patch, ", ", runtime, " threads");
}

std::string BuildKind() {
#ifdef NDEBUG
  return "optimised build, GCC " __VERSION__;
#else
  return "debug build, GCC " __VERSION__;
#endif
}

std::string ProgramIdentity() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  std::vector<char> part(1 << 20);
  uint32_t hash = 0;
  while (file.read(part.data(), static_cast<std::streamsize>(part.size())) || file.gcount() > 0) {
    hash = Crc32c(part.data(), static_cast<size_t>(file.gcount()), hash);
  }
  return Join("trainer " TRAINER_VERSION ", checksum ", std::hex, hash);
}

size_t HostBytes() {
  return static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace trainer

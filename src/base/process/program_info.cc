#include "trainer/base/process/program_info.h"

#include <fstream>
#include <vector>

#include "trainer/base/random/crc32c.h"
#include "trainer/base/text/text.h"

namespace trainer {

std::string BuildKind() {
#ifdef NDEBUG
  return "optimised build, GCC " __VERSION__;
#else
  return "debug build, GCC " __VERSION__;
#endif
}

// WriteCommit.cmake writes the definition that replaces this one in the program.
[[gnu::weak]] std::string_view BuildCommit() { return "unknown"; }

std::string_view ProgramVersion() { return TRAINER_VERSION; }

std::string ProgramIdentity() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  std::vector<char> part(1 << 20);
  uint32_t hash = 0;
  while (file.read(part.data(), static_cast<std::streamsize>(part.size())) || file.gcount() > 0) {
    hash = Crc32c(part.data(), static_cast<size_t>(file.gcount()), hash);
  }
  return Join("trainer " TRAINER_VERSION ", checksum ", std::hex, hash);
}

}  // namespace trainer

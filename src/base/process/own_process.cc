#include "trainer/base/process/own_process.h"

#include <cstdlib>
#include <fstream>

namespace trainer {
namespace {

// The system loads a program within milliseconds of its start.
const std::chrono::steady_clock::time_point g_load_time = std::chrono::steady_clock::now();

}  // namespace

std::chrono::steady_clock::time_point LoadTime() { return g_load_time; }

std::vector<std::string> CommandLine() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

std::string EnvironmentVariable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace trainer

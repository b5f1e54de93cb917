// Runs the linked fuzz target over files and folders of files, for builds without libFuzzer. Prints
// the number of inputs; exits with 1 if there were none.

#include <cstdio>
#include <filesystem>
#include <vector>

#include "fuzz/fuzz_target.h"
#include "trainer/base/file/file.h"

namespace {

void Run(const std::filesystem::path& path) {
  const std::string bytes = trainer::ReadFile(path.string(), 1 << 20);
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}

std::vector<std::filesystem::path> FilesOf(const std::filesystem::path& path) {
  if (!std::filesystem::is_directory(path)) return {path};
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(path)) files.push_back(entry.path());
  return files;
}

}  // namespace

int main(int argc, char** argv) {
  int inputs = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& file : FilesOf(argv[i])) {
      Run(file);
      ++inputs;
    }
  }
  std::printf("%d inputs\n", inputs);
  return inputs > 0 ? 0 : 1;
}

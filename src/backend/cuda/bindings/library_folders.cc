#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "cuda/bindings/libraries.h"
#include "trainer/base/text/text.h"

namespace trainer::cuda {
namespace {

namespace fs = std::filesystem;

// Returns the folders in `parent` whose names begin with `start`, sorted by name; none if `parent`
// cannot be read.
std::vector<fs::path> FoldersIn(const fs::path& parent, const std::string& start) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator at(parent, error), end; !error && at != end; at.increment(error)) {
    if (at->path().filename().string().starts_with(start)) found.push_back(at->path());
  }
  std::ranges::sort(found);
  return found;
}

// A list of existing folders, without duplicates, in the order of Add.
class Folders {
 public:
  // Adds a folder if it exists and is not listed yet.
  void Add(const fs::path& folder) {
    std::error_code error;
    if (!fs::is_directory(folder, error)) return;
    if (std::ranges::find(list_, folder.string()) == list_.end()) list_.push_back(folder.string());
  }
  // Adds the library folders of an installation of CUDA.
  void AddToolkit(const fs::path& root) {
    for (const char* below : {"lib64", "lib", "targets/x86_64-linux/lib"}) Add(root / below);
  }
  // Adds the wheels of one Python: <packages>/nvidia/<name>/lib.
  void AddWheels(const fs::path& packages) {
    for (const fs::path& wheel : FoldersIn(packages / "nvidia", "")) Add(wheel / "lib");
  }
  // Adds the wheels of each Python that has its library below `prefix`.
  void AddPythons(const fs::path& prefix) {
    for (const fs::path& python : FoldersIn(prefix / "lib", "python3")) {
      AddWheels(python / "site-packages");
      AddWheels(python / "dist-packages");
    }
  }
  // Returns the list and leaves this one empty.
  std::vector<std::string> Take() { return std::move(list_); }

 private:
  std::vector<std::string> list_;
};

}  // namespace

std::vector<std::string> LibraryFolders(
    const std::function<std::string(const char*)>& environment) {
  Folders folders;
  for (const char* name : {"CUDA_PATH", "CUDA_HOME"}) {
    if (const std::string root = environment(name); !root.empty()) folders.AddToolkit(root);
  }
  folders.AddToolkit("/usr/local/cuda");
  if (const std::string root = environment("VIRTUAL_ENV"); !root.empty()) folders.AddPythons(root);
  if (const std::string root = environment("CONDA_PREFIX"); !root.empty()) {
    folders.Add(fs::path(root) / "lib");
    folders.AddPythons(root);
  }
  if (const std::string home = environment("HOME"); !home.empty()) {
    folders.AddPythons(fs::path(home) / ".local");
  }
  for (const char* prefix : {"/usr/local", "/usr"}) folders.AddPythons(prefix);
  return folders.Take();
}

std::vector<std::string> UsualLibraryFolders() {
  return LibraryFolders([](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  });
}

}  // namespace trainer::cuda

#pragma once
// cuBLASLt and cuDNN, which are opened when a GPU is first used: a program that computes on the CPU
// needs neither and starts no slower.

#include <functional>
#include <string>
#include <vector>

namespace trainer::cuda {

struct Libraries {
  std::string cublas, cudnn;         // "13.1.0 in /usr/local/cuda/lib64", empty where there is none
  std::vector<std::string> missing;  // one sentence each, with what to do
};

// Opens them, and fills the tables behind GetCublasLt() and GetCudnn(), unless a test did that.
// Tried once in a process; any thread.
Libraries OpenLibraries();

// Where libraries of CUDA are looked for when the loader does not know them, in this order: CUDA's
// own folders, then those of the wheels of PyPI (nvidia-cublas, nvidia-cudnn-cu13) and of conda.
// Only what is there. `environment` answers like getenv.
std::vector<std::string> LibraryFolders(const std::function<std::string(const char*)>& environment);

// These of this process.
std::vector<std::string> UsualLibraryFolders();

// How a library tells its version.
enum class VersionForm {
  kReturned,  // 10000 * major + 100 * minor + patch, as it returns
  kPointer,   // written to an int, as NCCL's does
};

// How a library is found and judged.
struct LibraryKind {
  std::string title;               // "cuDNN 9"
  std::vector<std::string> names;  // "libcudnn.so.9", the best first
  std::string version_call;
  std::vector<size_t> majors;    // those that will do
  std::string without, install;  // the end of the sentence where it is missing
  VersionForm version_form = VersionForm::kReturned;
};

// A library that was opened, or in `problem` why not. It stays open for good.
struct OpenedLibrary {
  void* handle = nullptr;
  std::string description;  // "9.19.0 in /usr/lib/x86_64-linux-gnu"
  std::string problem;
};
OpenedLibrary OpenLibrary(const LibraryKind& kind, const std::vector<std::string>& folders);

}  // namespace trainer::cuda

#pragma once
// Opens cuBLASLt and cuDNN when a GPU is first used: a program that computes on the CPU needs
// neither and starts no slower.

#include <functional>
#include <string>
#include <vector>

namespace trainer::cuda {

struct Libraries {
  std::string cublas, cudnn;         // "13.1.0 in /usr/local/cuda/lib64", empty if not found
  std::vector<std::string> missing;  // one sentence each, which says what to do
};

// Opens cuBLASLt and cuDNN and fills the tables that GetCublasLt() and GetCudnn() return, unless a
// test set them. Tries only once per process. Thread-safe.
Libraries OpenLibraries();

// Returns the existing folders to search for CUDA libraries if the loader does not find them, in
// this order: CUDA's own folders, then the folders of PyPI's wheels (nvidia-cublas,
// nvidia-cudnn-cu13) and of conda. `environment` works like getenv.
std::vector<std::string> LibraryFolders(const std::function<std::string(const char*)>& environment);

// Returns the folders for the environment of this process.
std::vector<std::string> UsualLibraryFolders();

// How a library reports its version.
enum class VersionForm {
  kReturned,  // returned as 10000 * major + 100 * minor + patch
  kPointer,   // written to an int, as NCCL does
};

// How to find a library and check its version.
struct LibraryKind {
  std::string title;               // "cuDNN 9"
  std::vector<std::string> names;  // "libcudnn.so.9", in order of preference
  std::string version_call;
  std::vector<size_t> majors;    // the supported versions
  std::string without, install;  // ends of the message if it is missing
  VersionForm version_form = VersionForm::kReturned;
};

// An open library, or in `problem` the reason why it cannot be used. It is never closed.
struct OpenedLibrary {
  void* handle = nullptr;
  std::string description;  // "9.19.0 in /usr/lib/x86_64-linux-gnu"
  std::string problem;
};
// Opens a library on the loader's own path or in `folders`, and checks its version. Never throws.
OpenedLibrary OpenLibrary(const LibraryKind& kind, const std::vector<std::string>& folders);

}  // namespace trainer::cuda

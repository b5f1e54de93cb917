#include "cuda/bindings/libraries.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <filesystem>

#include "cuda/bindings/cublas_lt.h"
#include "cuda/bindings/cudnn.h"
#include "cuda/bindings/nccl.h"
#include "trainer/base/text/text.h"

namespace trainer::cuda {
namespace {

// The tables of the libraries; null for a library that is not open.
struct Tables {
  const CublasLt* cublas_lt = nullptr;
  const Cudnn* cudnn = nullptr;
  const Nccl* nccl = nullptr;
};
// Returns the tables of this process.
Tables& OpenTables() {
  static Tables tables;
  return tables;
}

// Formats a version: 91900 is "9.19.0".
std::string VersionText(size_t version) {
  return Join(version / 10000, ".", version % 10000 / 100, ".", version % 100);
}

// Returns the folder of an open library, or "".
std::string LibraryFolder(void* handle) {
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) return "";
  return std::filesystem::path(map->l_name).parent_path().string();
}

// Returns the end of the message if the library cannot be used.
std::string WhatToDo(const LibraryKind& kind) {
  return Join("; ", kind.install, ", or add its folder to LD_LIBRARY_PATH. ", kind.without);
}

// Returns the message for a library that was not found, or whose file cannot be loaded for the
// reason `broken`.
std::string NotFound(const LibraryKind& kind, const std::string& broken) {
  if (!broken.empty()) {
    return Join(kind.title, " cannot be loaded: ", broken, WhatToDo(kind));
  }
  return Join(kind.title, " was not found (", JoinList(kind.names), ")", WhatToDo(kind));
}

// Opens a library on the loader's own path or in `folders`. Returns null if there is none; sets
// `broken` to the loader's error for a file that exists but cannot be loaded.
void* FindLibrary(const LibraryKind& kind, const std::vector<std::string>& folders,
                  std::string* broken) {
  for (const std::string& name : kind.names) {
    if (void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
  }
  for (const std::string& folder : folders) {
    for (const std::string& name : kind.names) {
      const std::string file = (std::filesystem::path(folder) / name).string();
      std::error_code error;
      if (!std::filesystem::exists(file, error)) continue;
      if (void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
      if (broken->empty()) *broken = EscapeControl(dlerror());
    }
  }
  return nullptr;
}

// Looks up the functions of one library by name. A missing function is a problem of the library;
// the first is reported.
class Symbols {
 public:
  Symbols(OpenedLibrary& library, std::string prefix)
      : library_(library), prefix_(std::move(prefix)) {}

  // Sets `function` to the function `name`, without its prefix; null if the library lacks it.
  template <class F>
  void Load(F& function, const char* name) {
    void* found = dlsym(library_.handle, (prefix_ + name).c_str());
    if (found == nullptr && library_.problem.empty()) {
      library_.problem = Join(prefix_, name, " is not in version ", library_.description,
                              "; install a newer version");
    }
    function = reinterpret_cast<F>(found);
  }

 private:
  OpenedLibrary& library_;
  std::string prefix_;
};

// Fills the table of cuBLASLt and returns it. Returns null and sets the problem if a function is
// missing.
const CublasLt* LoadCublasLt(OpenedLibrary& library) {
  static CublasLt table;
  Symbols symbols(library, "cublasLt");
#define LOAD(name) symbols.Load(table.name, #name)
  LOAD(GetVersion);
  LOAD(GetStatusString);
  LOAD(Create);
  LOAD(Destroy);
  LOAD(MatmulDescCreate);
  LOAD(MatmulDescDestroy);
  LOAD(MatmulDescSetAttribute);
  LOAD(MatrixLayoutCreate);
  LOAD(MatrixLayoutDestroy);
  LOAD(MatmulPreferenceCreate);
  LOAD(MatmulPreferenceDestroy);
  LOAD(MatmulPreferenceSetAttribute);
  LOAD(MatmulAlgoGetHeuristic);
  LOAD(Matmul);
  return library.problem.empty() ? &table : nullptr;
}

// Fills the table of cuDNN and returns it. Returns null and sets the problem if a function is
// missing.
const Cudnn* LoadCudnn(OpenedLibrary& library) {
  static Cudnn table;
  Symbols symbols(library, "cudnn");
  LOAD(GetVersion);
  LOAD(GetErrorString);
  LOAD(GetLastErrorString);
  LOAD(Create);
  LOAD(Destroy);
  LOAD(SetStream);
  LOAD(CreateTensorDescriptor);
  LOAD(DestroyTensorDescriptor);
  LOAD(SetTensorNdDescriptorEx);
  LOAD(CreateFilterDescriptor);
  LOAD(DestroyFilterDescriptor);
  LOAD(SetFilterNdDescriptor);
  LOAD(CreateConvolutionDescriptor);
  LOAD(DestroyConvolutionDescriptor);
  LOAD(SetConvolutionNdDescriptor);
  LOAD(SetConvolutionGroupCount);
  LOAD(SetConvolutionMathType);
  LOAD(CreateActivationDescriptor);
  LOAD(DestroyActivationDescriptor);
  LOAD(SetActivationDescriptor);
  LOAD(GetConvolutionForwardAlgorithm_v7);
  LOAD(FindConvolutionForwardAlgorithmEx);
  LOAD(GetConvolutionForwardWorkspaceSize);
  LOAD(ConvolutionForward);
  LOAD(ConvolutionBiasActivationForward);
  LOAD(GetConvolutionBackwardDataAlgorithm_v7);
  LOAD(FindConvolutionBackwardDataAlgorithmEx);
  LOAD(GetConvolutionBackwardDataWorkspaceSize);
  LOAD(ConvolutionBackwardData);
  LOAD(GetConvolutionBackwardFilterAlgorithm_v7);
  LOAD(FindConvolutionBackwardFilterAlgorithmEx);
  LOAD(GetConvolutionBackwardFilterWorkspaceSize);
  LOAD(ConvolutionBackwardFilter);
  return library.problem.empty() ? &table : nullptr;
}

// Fills the table of NCCL and returns it. Returns null and sets the problem if a function is
// missing.
const Nccl* LoadNccl(OpenedLibrary& library) {
  static Nccl table;
  Symbols symbols(library, "nccl");
  LOAD(GetVersion);
  LOAD(GetErrorString);
  LOAD(GetUniqueId);
  LOAD(CommInitRank);
  LOAD(CommDestroy);
  LOAD(CommAbort);
  LOAD(CommGetAsyncError);
  LOAD(AllReduce);
#undef LOAD
  return library.problem.empty() ? &table : nullptr;
}

// Says how to find cuBLASLt, for OpenLibrary.
LibraryKind CublasLtKind() {
  return {.title = "cuBLASLt 12 or 13",
          .names = {"libcublasLt.so.13", "libcublasLt.so.12"},
          .version_call = "cublasLtGetVersion",
          .majors = {12, 13},
          .without = "Without it, matrix products run many times slower",
          .install =
              "install it (Debian's package libcublas-13-0 of NVIDIA, or 'pip install "
              "nvidia-cublas')"};
}

// Says how to find cuDNN, for OpenLibrary.
LibraryKind CudnnKind() {
  return {.title = "cuDNN 9",
          .names = {"libcudnn.so.9"},
          .version_call = "cudnnGetVersion",
          .majors = {9},
          .without = "Without it, convolutions run many times slower",
          .install =
              "install it (Debian's package cudnn9-cuda-13 of NVIDIA, or 'pip install "
              "nvidia-cudnn-cu13')"};
}

// Says how to find NCCL, for OpenLibrary.
LibraryKind NcclKind() {
  return {.title = "NCCL 2",
          .names = {"libnccl.so.2"},
          .version_call = "ncclGetVersion",
          .majors = {2},
          .without = "Without it, the CPU sums the gradients of several GPUs",
          .install =
              "install it (Debian's package libnccl2 of NVIDIA, or 'pip install "
              "nvidia-nccl-cu13')",
          .version_form = VersionForm::kPointer};
}

// Opens both libraries and fills their tables. Opens cuBLASLt first, because parts of cuDNN need it
// and find it once it is open.
Libraries OpenBoth() {
  const std::vector<std::string> folders = UsualLibraryFolders();
  Libraries libraries;
  OpenedLibrary lt = OpenLibrary(CublasLtKind(), folders);
  if (lt.handle != nullptr) OpenTables().cublas_lt = LoadCublasLt(lt);
  OpenedLibrary dnn = OpenLibrary(CudnnKind(), folders);
  if (dnn.handle != nullptr) OpenTables().cudnn = LoadCudnn(dnn);
  libraries.cublas = lt.description;
  libraries.cudnn = dnn.description;
  for (const OpenedLibrary* library : {&lt, &dnn}) {
    if (!library->problem.empty()) libraries.missing.push_back(library->problem);
  }
  return libraries;
}

// Calls the library's function for its version.
size_t VersionBy(void* call, VersionForm form) {
  if (form == VersionForm::kReturned) return reinterpret_cast<size_t (*)()>(call)();
  int version = 0;
  reinterpret_cast<int (*)(int*)>(call)(&version);
  return static_cast<size_t>(version);
}

}  // namespace

OpenedLibrary OpenLibrary(const LibraryKind& kind, const std::vector<std::string>& folders) {
  OpenedLibrary library;
  std::string broken;
  void* handle = FindLibrary(kind, folders, &broken);
  if (handle == nullptr) {
    library.problem = NotFound(kind, broken);
    return library;
  }
  void* const version_call = dlsym(handle, kind.version_call.c_str());
  if (version_call == nullptr) {
    library.problem =
        Join(kind.title, ": ", LibraryFolder(handle), " has a library of that name, but ",
             "without ", kind.version_call, WhatToDo(kind));
    return library;
  }
  const size_t version = VersionBy(version_call, kind.version_form);
  library.description = Join(VersionText(version), " in ", LibraryFolder(handle));
  if (std::ranges::find(kind.majors, version / 10000) == kind.majors.end()) {
    library.problem =
        Join(kind.title, " is needed; the version found is ", library.description, WhatToDo(kind));
    return library;
  }
  library.handle = handle;
  return library;
}

Libraries OpenLibraries() {
  if (!GetRuntime()->linked) {  // the emulated runtime may provide them
    Libraries given;
    (OpenTables().cublas_lt ? given.cublas : given.missing.emplace_back()) =
        OpenTables().cublas_lt ? "emulated" : NotFound(CublasLtKind(), "");
    (OpenTables().cudnn ? given.cudnn : given.missing.emplace_back()) =
        OpenTables().cudnn ? "emulated" : NotFound(CudnnKind(), "");
    return given;
  }
  static const Libraries libraries = OpenBoth();
  return libraries;
}

std::string OpenNccl(std::string* description) {
  if (!GetRuntime()->linked) {
    *description = "emulated";
    return OpenTables().nccl != nullptr ? "" : NotFound(NcclKind(), "");
  }
  static OpenedLibrary library = [] {
    OpenedLibrary opened = OpenLibrary(NcclKind(), UsualLibraryFolders());
    if (opened.handle != nullptr) OpenTables().nccl = LoadNccl(opened);
    return opened;
  }();
  *description = library.description;
  return library.problem;
}

const Nccl* GetNccl() { return OpenTables().nccl; }
void SetNccl(const Nccl* table) { OpenTables().nccl = table; }

const CublasLt* GetCublasLt() { return OpenTables().cublas_lt; }
const Cudnn* GetCudnn() { return OpenTables().cudnn; }

void SetCublasLt(const CublasLt* table) { OpenTables().cublas_lt = table; }
void SetCudnn(const Cudnn* table) { OpenTables().cudnn = table; }

}  // namespace trainer::cuda

#include "cuda/nvjpeg.h"

#include <dlfcn.h>

#include <type_traits>

#include "cuda/libraries.h"
#include "trainer/base/text.h"

namespace trainer::cuda {
namespace {

constexpr size_t kLeastVersion = 120100;

const Nvjpeg*& Given() {
  static const Nvjpeg* table = nullptr;
  return table;
}

LibraryKind NvjpegKind() {
  return {.title = "nvJPEG 12 or 13",
          .names = {"libnvjpeg.so.13", "libnvjpeg.so.12"},
          .version_call = "nvjpegGetProperty",
          .majors = {12, 13},
          .without = "Until then the host decodes all pictures",
          .install =
              "install it (Debian's package libnvjpeg-13-0 of NVIDIA, or 'pip install "
              "nvidia-nvjpeg')",
          .version_form = VersionForm::kProperties};
}

// Null with a sentence.
const Nvjpeg* Load(std::string* why, std::string* description) {
  static Nvjpeg table;
  const OpenedLibrary library = OpenLibrary(NvjpegKind(), UsualLibraryFolders());
  *why = library.problem;
  *description = library.description;
  if (library.handle == nullptr) return nullptr;
  if (library.version < kLeastVersion) {
    *why = Join("nvJPEG 12.1 or later is needed; the version found is ", library.description,
                ". Until then the host decodes all pictures");
    return nullptr;
  }
  bool complete = true;
  const auto load = [&](auto& call, const char* name) {
    call = reinterpret_cast<std::remove_reference_t<decltype(call)>>(dlsym(library.handle, name));
    if (call == nullptr && complete) {
      *why = Join(name, " is not in version ", library.description,
                  "; install a newer version. Until then the host decodes all pictures");
    }
    complete = complete && call != nullptr;
  };
  load(table.GetProperty, "nvjpegGetProperty");
  load(table.CreateEx, "nvjpegCreateEx");
  load(table.Destroy, "nvjpegDestroy");
  load(table.JpegStateCreate, "nvjpegJpegStateCreate");
  load(table.JpegStateDestroy, "nvjpegJpegStateDestroy");
  load(table.DecodeBatchedInitialize, "nvjpegDecodeBatchedInitialize");
  load(table.DecodeBatched, "nvjpegDecodeBatched");
  return complete ? &table : nullptr;
}

const Nvjpeg* Get(std::string* why, std::string* description) {
  if (Given() != nullptr) return Given();
  if (!GetRuntime()->linked) {
    *why = SentenceWithout(NvjpegKind());
    return nullptr;
  }
  static std::string problem, found;
  static const Nvjpeg* const library = Load(&problem, &found);
  *why = problem;
  *description = found;
  return library;
}

}  // namespace

const Nvjpeg* GetNvjpeg(std::string* why) {
  std::string description;
  return Get(why, &description);
}

std::string DescribeNvjpeg() {
  std::string why, description = "emulated";
  return Get(&why, &description) == nullptr ? "" : description;
}

void SetNvjpeg(const Nvjpeg* table) { Given() = table; }

}  // namespace trainer::cuda

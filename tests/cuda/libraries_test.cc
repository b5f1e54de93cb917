// The search for cuBLASLt and cuDNN, and the messages if they are not found.

#include "cuda/bindings/libraries.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "support/temp_folder.h"

namespace trainer::cuda {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

namespace fs = std::filesystem;

LibraryKind Some(std::vector<std::string> names, std::string version_call,
                 std::vector<size_t> majors) {
  return {.title = "cuSome 9",
          .names = std::move(names),
          .version_call = std::move(version_call),
          .majors = std::move(majors),
          .without = "Until then it is slow",
          .install = "install it"};
}

TEST(CudaLibrariesTest, AMissingOneSaysWhatToInstall) {
  const OpenedLibrary none = OpenLibrary(Some({"libsome.so.9", "libsome.so.8"}, "v", {9}), {});
  EXPECT_EQ(none.handle, nullptr);
  EXPECT_EQ(none.problem,
            "cuSome 9 was not found (libsome.so.9, libsome.so.8); install it, or add its folder "
            "to LD_LIBRARY_PATH. Until then it is slow");
}

TEST(CudaLibrariesTest, ABrokenOneSaysWhatTheLoaderSays) {
  const TempFolder folder;
  std::ofstream(folder / "libsome.so.9") << "not a library";
  const OpenedLibrary none = OpenLibrary(Some({"libsome.so.9"}, "v", {9}), {folder.path()});
  EXPECT_EQ(none.handle, nullptr);
  EXPECT_THAT(none.problem,
              StartsWith("cuSome 9 cannot be loaded: " + (folder / "libsome.so.9") + ": "));
}

// zlib's compile flags serve as a version.
TEST(CudaLibrariesTest, OneOfAnotherVersionIsRefused) {
  const OpenedLibrary old = OpenLibrary(Some({"libz.so.1"}, "zlibCompileFlags", {9}), {});
  EXPECT_EQ(old.handle, nullptr);
  EXPECT_THAT(old.problem, HasSubstr("cuSome 9 is needed; the version found is 0.1."));
}

TEST(CudaLibrariesTest, OneWithoutAVersionIsRefused) {
  const OpenedLibrary other = OpenLibrary(Some({"libz.so.1"}, "cusomeGetVersion", {9}), {});
  EXPECT_EQ(other.handle, nullptr);
  EXPECT_THAT(other.problem, HasSubstr("without cusomeGetVersion"));
}

TEST(CudaLibrariesTest, OneInAFolderIsOpened) {
  const OpenedLibrary known = OpenLibrary(Some({"libz.so.1"}, "zlibCompileFlags", {0}), {});
  ASSERT_NE(known.handle, nullptr) << known.problem;
  const std::string where = known.description.substr(known.description.find(" in ") + 4);
  const TempFolder folder;
  fs::copy_file(fs::path(where) / "libz.so.1", folder / "libsome.so.9");
  const OpenedLibrary found =
      OpenLibrary(Some({"libsome.so.9"}, "zlibCompileFlags", {0}), {"/nowhere", folder.path()});
  EXPECT_NE(found.handle, nullptr) << found.problem;
  EXPECT_THAT(found.description, testing::EndsWith(" in " + folder.path()));
}

TEST(CudaLibrariesTest, FoldersOfCudaComeBeforeThoseOfWheels) {
  const TempFolder root;
  const fs::path cuda = root / "cuda", venv = root / "venv";
  const fs::path packages = venv / "lib/python3.11/site-packages/nvidia";
  for (const fs::path& folder :
       {cuda / "lib64", packages / "cudnn/lib", packages / "cu13/lib", packages / "nvtx/include"}) {
    fs::create_directories(folder);
  }
  std::vector<std::string> found = LibraryFolders([&](const char* name) {
    if (name == std::string("CUDA_HOME")) return cuda.string();
    if (name == std::string("VIRTUAL_ENV")) return venv.string();
    return std::string();
  });
  std::erase_if(found, [&](const std::string& f) { return !f.starts_with(root.path()); });
  EXPECT_THAT(found, ElementsAre((cuda / "lib64").string(), (packages / "cu13/lib").string(),
                                 (packages / "cudnn/lib").string()));
}

TEST(CudaLibrariesTest, FoldersThatAreNotThereAreLeftOut) {
  for (const std::string& folder : LibraryFolders([](const char*) { return "/nowhere"; })) {
    EXPECT_TRUE(fs::is_directory(folder)) << folder;
  }
}

}  // namespace
}  // namespace trainer::cuda

#include "trainer/storage/format.h"

#include <algorithm>
#include <filesystem>

#include "hdf5_set.h"
#include "leveldb.h"
#include "lmdb/lmdb.h"
#include "tar/tar.h"
#include "trainer/base/file/file.h"
#include "trainer/storage/array_file.h"
#include "trainer/storage/hdf5_list.h"
#include "trainer/storage/tar_shards.h"

namespace trainer {

namespace {

constexpr Format kFormats[] = {
    {"HDF5", "", OpenHdf5, nullptr},
    {"LEVELDB", "CURRENT", OpenLevelDb, CreateLevelDb},
    {"LMDB", "data.mdb", OpenLmdb, CreateLmdb},
    {"NUMPY", "", OpenHdf5, nullptr},
    {"TAR", "", OpenTar, nullptr},
};

}  // namespace

const Format* FindFormat(std::string_view name) {
  for (const Format& format : kFormats) {
    if (format.name == name) return &format;
  }
  return nullptr;
}

const Format* FormatOfFolder(const std::string& folder) {
  for (const Format& format : kFormats) {
    std::error_code ignored;
    if (*format.marker == '\0') continue;
    if (std::filesystem::exists(std::filesystem::path(folder) / format.marker, ignored)) {
      return &format;
    }
  }
  return nullptr;
}

std::string DetectFormat(const std::string& path) {
  if (IsDirectory(path)) {
    const Format* const format = FormatOfFolder(path);
    if (format != nullptr) return format->name;
    throw Error(
        ErrorCode::kNoInput, {path},
        "the folder is not a database: it has neither data.mdb (LMDB) nor CURRENT (LevelDB); "
        "'trainer dataset images' makes a database from a folder of images");
  }
  if (IsHdf5Name(path)) return "HDF5";
  if (IsNumpyPath(path)) return "NUMPY";
  if (HoldsTarShards(path)) return "TAR";
  return path.ends_with(".txt") ? "HDF5" : "LMDB";
}

std::vector<std::string> FilesOfSet(const std::string& path) {
  if (!IsDirectory(path)) {
    if (IsNumpyPath(path)) return NumpyFiles(path);
    if (IsShardPattern(path)) return ExpandShards(path);
    if (!Exists(path)) return {};
    const std::string kind = DetectFormat(path);
    if (kind == "TAR") return ExpandShards(path);
    if (kind != "HDF5" || !path.ends_with(".txt")) return {path};
    std::vector<std::string> files;
    for (const ListedHdf5& file : ReadHdf5List(path)) files.push_back(file.path);
    return files;
  }
  std::vector<std::string> files;
  std::error_code failed;
  std::filesystem::directory_iterator entry(path, failed);
  for (; !failed && entry != std::filesystem::directory_iterator(); entry.increment(failed)) {
    const std::string name = entry->path().filename().string();
    std::error_code ignored;
    if (entry->is_regular_file(ignored) && name != "lock.mdb" && !name.starts_with("LO")) {
      files.push_back(entry->path().string());
    }
  }
  if (failed)
    ThrowFileError(FileUse::kInput, "read the folder", AbsolutePath(path), failed.value());
  std::ranges::sort(files);
  return files;
}

bool IsHdf5Name(const std::string& path) {
  return path.ends_with(".h5") || path.ends_with(".hdf5");
}

}  // namespace trainer

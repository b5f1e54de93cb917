#include "local_copy_plan.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <future>

#include "gzip_reader.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/input/image_list.h"
#include "trainer/storage/file_pack.h"
#include "trainer/storage/format.h"
#include "trainer/storage/hdf5_list.h"
#include "trainer/storage/tar_shards.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;

struct stat FactsOf(const std::string& file) {
  struct stat facts {};
  if (stat(file.c_str(), &facts) != 0) ThrowFileError(FileUse::kInput, "look at", file, errno);
  return facts;
}

std::string Canonical(const std::string& path) {
  std::error_code failed;
  const fs::path found = fs::canonical(path, failed);
  if (failed) ThrowFileError(FileUse::kInput, "find", AbsolutePath(path), failed.value());
  return found.string();
}

// The size and the time of the last change, as part of a state.
std::string StateOf(const std::string& file) {
  const struct stat facts = FactsOf(file);
  return Join("\n", file, " ", facts.st_size, " ", facts.st_mtim.tv_sec, " ",
              facts.st_mtim.tv_nsec);
}

std::string NameOf(const std::string& path, const std::string& state) {
  return Join(FileNameOf(path), "-", std::hex, std::hash<std::string>()(state));
}

void CopyFile(const std::string& from, const std::string& to,
              const std::function<void(uint64_t)>& done) {
  FileHandle file = OpenForReading(from);
  posix_fadvise(file.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  std::vector<char> part(size_t{8} << 20);
  AtomicFile copy(to);
  for (;;) {
    const ssize_t got = FileOps::Posix().Read(file.get(), part.data(), part.size());
    if (got < 0) ThrowFileError(FileUse::kInput, "read", from, errno);
    if (got == 0) break;
    copy.Append(part.data(), static_cast<size_t>(got));
    done(static_cast<uint64_t>(got));
  }
  copy.Commit();  // reads it back and compares
}

// The total size of many files, and a number that changes with the size or time of any.
struct PicturesState {
  uint64_t bytes = 0, hash = 0;
};

// Several threads ask, since a file server answers one question after the other slowly.
PicturesState StateOfPictures(const std::vector<std::string>& files) {
  constexpr size_t kThreads = 16, kLeast = 1000;  // files for a thread of its own
  const size_t parts = std::clamp<size_t>(files.size() / kLeast, 1, kThreads);
  std::vector<std::future<PicturesState>> states;
  for (size_t part = 0; part < parts; ++part) {
    states.push_back(std::async(std::launch::async, [&files, part, parts] {
      PicturesState state;
      for (size_t i = part; i < files.size(); i += parts) {
        const struct stat facts = FactsOf(files[i]);
        state.bytes += static_cast<uint64_t>(facts.st_size);
        // A sum: in whatever order the parts are added.
        state.hash += std::hash<std::string>()(
            Join(i, " ", facts.st_size, " ", facts.st_mtim.tv_sec, " ", facts.st_mtim.tv_nsec));
      }
      return state;
    }));
  }
  PicturesState all;
  for (std::future<PicturesState>& state : states) {
    const PicturesState part = state.get();
    all.bytes += part.bytes;
    all.hash += part.hash;
  }
  return all;
}

bool HasSize(const std::string& file, off_t bytes) {
  struct stat facts {};
  return lstat(file.c_str(), &facts) == 0 && facts.st_size == bytes;
}

struct FileToCopy {
  std::string path, name;  // where it is, its name in the copy
  bool is_gzip = false;    // unpacked in the copy
};

// Returns the files with their names in the local copy, which begin with their numbers in `paths`:
// "0-a.h5", "1-b.h5".
std::vector<FileToCopy> NumberedFiles(const std::vector<std::string>& paths) {
  std::vector<FileToCopy> files;
  for (const std::string& path : paths) files.push_back({path, NameInCopy(files.size(), path)});
  return files;
}

LocalCopyPlan PlanFiles(const std::string& path, const std::vector<FileToCopy>& files) {
  std::string state = path;
  for (const FileToCopy& file : files) state += StateOf(file.path);
  LocalCopyPlan plan{path, NameOf(path, state), nullptr, nullptr, nullptr};
  plan.bytes = [files] {
    uint64_t bytes = 0;
    for (const FileToCopy& file : files) {
      const auto stored = static_cast<uint64_t>(FactsOf(file.path).st_size);
      bytes += file.is_gzip ? std::max(stored, UnpackedBytes(file.path)) : stored;
    }
    return bytes;
  };
  plan.copy = [files](const std::string& folder, const std::function<void(uint64_t)>& done) {
    for (const FileToCopy& file : files) {
      const auto copy = file.is_gzip ? UnpackGzip : CopyFile;
      copy(file.path, JoinPath(folder, file.name), done);
    }
  };
  plan.is_whole = [files](const std::string& folder) {
    return std::ranges::all_of(files, [&](const FileToCopy& file) {
      const std::string copy = JoinPath(folder, file.name);
      return file.is_gzip ? Exists(copy) : HasSize(copy, FactsOf(file.path).st_size);
    });
  };
  return plan;
}

}  // namespace

LocalCopyPlan PlanDatabaseCopy(const std::string& path) {
  const std::string found = Canonical(path);
  std::vector<FileToCopy> files;
  for (const std::string& file : FilesOfSet(found)) files.push_back({file, FileNameOf(file)});
  if (files.empty()) throw Error(ErrorCode::kNoInput, {path}, "it has no files");
  return PlanFiles(found, files);
}

std::string NameInCopy(size_t file, const std::string& path) {
  return Join(file, "-", FileNameOf(path));
}

LocalCopyPlan PlanHdf5ListCopy(const std::string& list) {
  std::vector<std::string> paths;
  for (const ListedHdf5& file : ReadHdf5List(list)) paths.push_back(file.path);
  return PlanFiles(Canonical(list), NumberedFiles(paths));
}

LocalCopyPlan PlanTarShardCopy(const std::string& tar) {
  std::vector<std::string> paths;
  for (const std::string& path : ExpandShards(tar)) paths.push_back(Canonical(path));
  std::vector<FileToCopy> files = NumberedFiles(paths);
  for (FileToCopy& file : files) file.is_gzip = IsGzip(file.path);
  return PlanFiles(files.size() == 1 ? files[0].path : tar, files);
}

LocalCopyPlan PlanImageListCopy(const std::string& list, const std::string& root) {
  const std::string found = Canonical(list);
  const auto files = [found, root] {
    std::vector<std::string> paths;
    for (const ListedImage& image : ReadImages(found).images) paths.push_back(root + image.path);
    return paths;
  };
  const PicturesState pictures = StateOfPictures(files());
  LocalCopyPlan source{found, NameOf(found, Join(root, StateOf(found), "\n", pictures.hash)),
                       nullptr, nullptr, nullptr};
  source.bytes = [pictures] { return pictures.bytes; };
  source.copy = [files](const std::string& folder, const std::function<void(uint64_t)>& done) {
    WriteFilePack(files(), folder, done);
  };
  source.is_whole = IsWholePack;
  return source;
}

}  // namespace trainer

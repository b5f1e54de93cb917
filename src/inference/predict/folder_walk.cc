#include "predict/folder_walk.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "trainer/image/image_name.h"

namespace trainer {
namespace {

struct CloseFolder {
  void operator()(DIR* folder) const { closedir(folder); }
};

// Returns whether an entry is a folder, and not a link to one.
bool IsFolderEntry(DIR* folder, const dirent& entry) {
  if (entry.d_type != DT_UNKNOWN) return entry.d_type == DT_DIR;
  struct stat info {};
  return fstatat(dirfd(folder), entry.d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISDIR(info.st_mode);
}

// Keeps the `count` smallest names. The last one is then the greatest.
void KeepSmallest(size_t count, std::vector<std::string>* names) {
  const auto last = names->begin() + static_cast<std::ptrdiff_t>(count) - 1;
  std::nth_element(names->begin(), last, names->end());
  names->resize(count);
}

}  // namespace

FolderWalk::FolderWalk(std::string folder, size_t names) : most_(names) {
  if (!folder.ends_with('/')) folder += '/';
  levels_.push_back({.folder = std::move(folder)});
}

bool FolderWalk::Next(std::string* path) {
  while (!levels_.empty()) {
    Level& level = levels_.back();
    if (level.names.empty() && !level.is_whole && !ReadNames(&level)) {
      *path = level.folder.substr(0, level.folder.size() - 1);
      levels_.pop_back();
      return true;
    }
    if (level.names.empty()) {
      levels_.pop_back();
      continue;
    }
    std::string name = level.folder + level.names.back();
    level.names.pop_back();
    if (!name.ends_with('/')) {
      *path = std::move(name);
      return true;
    }
    levels_.push_back({.folder = std::move(name)});
  }
  return false;
}

bool FolderWalk::ReadNames(Level* level) const {
  const std::unique_ptr<DIR, CloseFolder> folder(opendir(level->folder.c_str()));
  if (folder == nullptr) return false;
  std::vector<std::string>& names = level->names;
  std::string limit;  // names after it are not among the next ones; "": not known yet
  level->is_whole = true;
  while (const dirent* const entry = readdir(folder.get())) {
    std::string name = entry->d_name;
    if (name.starts_with('.')) continue;
    if (IsFolderEntry(folder.get(), *entry)) {
      name += '/';
    } else if (!IsImageName(name)) {
      continue;
    }
    if (name <= level->last) continue;
    if (!limit.empty() && name > limit) continue;
    names.push_back(std::move(name));
    if (names.size() < 2 * most_) continue;
    KeepSmallest(most_, &names);
    limit = names.back();
    level->is_whole = false;
  }
  if (names.size() > most_) {
    KeepSmallest(most_, &names);
    level->is_whole = false;
  }
  std::ranges::sort(names, std::greater());
  if (!names.empty()) level->last = names.front();
  return true;
}

}  // namespace trainer

#include "trainer/input/class_folders.h"

#include <algorithm>
#include <filesystem>

#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/lower_case.h"
#include "trainer/base/text/text.h"
#include "trainer/image/image_name.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;

// The names in a folder, in byte order, without hidden ones.
std::vector<std::string> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code failed;
  fs::directory_iterator entry(folder, failed);
  for (; !failed && entry != fs::directory_iterator(); entry.increment(failed)) {
    std::string name = entry->path().filename().string();
    if (!name.starts_with('.')) names.push_back(std::move(name));
  }
  if (failed) {
    ThrowFileError(FileUse::kInput, "read the folder", AbsolutePath(folder), failed.value());
  }
  std::ranges::sort(names);
  return names;
}

constexpr char kPictureNames[] = "JPEG, PNG, TIFF, PGM or PPM";

std::string TypeOfFile(const std::string& name) {
  const std::string type = fs::path(name).extension().string();
  return type.empty() ? "without a type" : LowerCase(type);
}

// Finds the images of a class. Symbolic links to folders are not followed, so there are no cycles.
void AddPictures(const std::string& root, const std::string& below, int32_t label,
                 ClassFolders* found) {
  for (const std::string& name : NamesIn(JoinPath(root, below))) {
    const std::string path = below + "/" + name, full = JoinPath(root, path);
    std::error_code ignored;
    if (IsDirectory(full)) {
      if (!fs::is_symlink(full, ignored)) AddPictures(root, path, label, found);
    } else if (IsImageName(name)) {
      found->images.push_back({path, label, 0});
    } else {
      ++found->others[TypeOfFile(name)];
    }
  }
}

// Sets `names`, and counts the files that are not in a subfolder.
void FindNames(const std::string& folder, ClassFolders* found) {
  if (!IsDirectory(folder)) {
    throw Error(ErrorCode::kNoInput, {AbsolutePath(folder)},
                Exists(folder) ? "this is not a folder; give the folder with one folder per class"
                               : "the folder does not exist");
  }
  bool pictures = false;
  for (const std::string& name : NamesIn(folder)) {
    if (IsDirectory(JoinPath(folder, name))) {
      if (name.find_first_of("\r\n") != std::string::npos) {
        throw Error(ErrorCode::kData, {folder},
                    Join("the name of the class '", EscapeControl(name),
                         "' contains a line break, but the file of class names has one name per "
                         "line; rename the folder"));
      }
      found->names.push_back(name);
    } else {
      pictures |= IsImageName(name);
      ++found->others[TypeOfFile(name)];
    }
  }
  if (!found->names.empty()) return;
  throw Error(ErrorCode::kData, {folder},
              Join("the folder has no subfolders", pictures ? ", only images" : "",
                   "; put the images of each class into a subfolder with the name of the class, "
                   "or give a list of images: trainer dataset images ROOT LIST DB"));
}

}  // namespace

std::vector<std::string> FindClassNames(const std::string& folder) {
  ClassFolders found;
  FindNames(folder, &found);
  return found.names;
}

ClassFolders FindClassFolders(const std::string& folder, EmptyClasses empty) {
  ClassFolders found;
  FindNames(folder, &found);
  for (size_t i = 0; i < found.names.size(); ++i) {
    const size_t before = found.images.size();
    AddPictures(folder, found.names[i], static_cast<int32_t>(i), &found);
    if (found.images.size() > before || empty == EmptyClasses::kAccept) continue;
    throw Error(ErrorCode::kData, {JoinPath(folder, found.names[i])},
                Join("the folder of this class has no ", kPictureNames,
                     " files; remove the folder, or add images"));
  }
  if (!found.images.empty()) return found;
  throw Error(ErrorCode::kData, {folder},
              Join("none of the ", found.names.size(), " subfolders has ", kPictureNames,
                   " files; add images"));
}

std::string OthersText(const ClassFolders& found) {
  if (found.others.empty()) return "";
  constexpr size_t kMostTypes = 8;
  int files = 0;
  std::vector<std::string> types;
  for (const auto& [type, count] : found.others) {
    files += count;
    if (types.size() < kMostTypes) types.push_back(Join(type, " ", count));
  }
  if (found.others.size() > kMostTypes) types.emplace_back("...");
  return Join("Skipped ", files, files == 1 ? " other file (" : " other files (", JoinList(types),
              "); images are .jpg, .jpeg, .png, .tif, .tiff, .pgm and .ppm");
}

}  // namespace trainer

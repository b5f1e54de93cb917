#include "trainer/storage/path_redirects.h"

#include <filesystem>
#include <map>
#include <memory>
#include <utility>

namespace trainer {
namespace {

std::map<std::string, std::string>& Copies() {
  static std::map<std::string, std::string> copies;
  return copies;
}

std::map<std::pair<std::string, std::string>, std::unique_ptr<FilePack>>& Packs() {
  static std::map<std::pair<std::string, std::string>, std::unique_ptr<FilePack>> packs;
  return packs;
}

std::string Canonical(const std::string& path) {
  std::error_code failed;
  const std::filesystem::path found = std::filesystem::weakly_canonical(path, failed);
  return failed ? path : found.string();
}

}  // namespace

void RedirectPath(const std::string& source, const std::string& copy) {
  Copies()[Canonical(source)] = copy;
}

std::string ResolvedPath(const std::string& path) {
  if (Copies().empty()) return path;
  const auto found = Copies().find(Canonical(path));
  return found == Copies().end() ? path : found->second;
}

void RedirectToPack(const std::string& list, const std::string& root, const std::string& folder) {
  Packs()[{Canonical(list), root}] = std::make_unique<FilePack>(folder);
}

const FilePack* FilePackOf(const std::string& list, const std::string& root) {
  if (Packs().empty()) return nullptr;
  const auto found = Packs().find({Canonical(list), root});
  return found == Packs().end() ? nullptr : found->second.get();
}

}  // namespace trainer

#include "trainer/data/staged.h"

#include <filesystem>
#include <map>

namespace trainer {
namespace {

std::map<std::string, std::string>& Copies() {
  static std::map<std::string, std::string> copies;
  return copies;
}

std::string Canonical(const std::string& path) {
  std::error_code failed;
  const std::filesystem::path found = std::filesystem::weakly_canonical(path, failed);
  return failed ? path : found.string();
}

}  // namespace

void ReadInstead(const std::string& source, const std::string& copy) {
  Copies()[Canonical(source)] = copy;
}

std::string ReadPathOf(const std::string& path) {
  if (Copies().empty()) return path;
  const auto found = Copies().find(Canonical(path));
  return found == Copies().end() ? path : found->second;
}

}  // namespace trainer

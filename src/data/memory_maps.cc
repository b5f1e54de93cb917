#include "memory_maps.h"

#include <charconv>
#include <fstream>
#include <sstream>
#include <string_view>

namespace trainer {
namespace {

template <class T>
bool TakeHex(std::string_view* text, T* number) {
  const auto [stop, error] =
      std::from_chars(text->data(), text->data() + text->size(), *number, 16);
  text->remove_prefix(static_cast<size_t>(stop - text->data()));
  return error == std::errc();
}

// A line: "start-end permissions offset device inode path".
bool Parse(const std::string& line, MemoryMap* map) {
  std::istringstream words(line);
  std::string range, permissions, offset, device, inode;
  if (!(words >> range >> permissions >> offset >> device >> inode)) return false;
  std::getline(words >> std::ws, map->file);
  std::string_view bounds = range, from = offset;
  if (!TakeHex(&bounds, &map->start) || !bounds.starts_with('-')) return false;
  bounds.remove_prefix(1);
  return TakeHex(&bounds, &map->end) && TakeHex(&from, &map->offset);
}

}  // namespace

std::vector<MemoryMap> ListMemoryMaps() {
  std::vector<MemoryMap> all;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    MemoryMap map;
    if (Parse(line, &map)) all.push_back(std::move(map));
  }
  return all;
}

}  // namespace trainer

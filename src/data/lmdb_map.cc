#include "lmdb_map.h"

#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

namespace trainer {
namespace {

// The maps that belong to an environment already: a database may be open several times.
std::set<const char*>& Owned() {
  static std::set<const char*> owned;
  return owned;
}

// A line of /proc/self/maps: "start-end permissions offset device inode path".
struct Region {
  uintptr_t start = 0, end = 0;
  std::string permissions, offset, path;
};

bool Parse(const std::string& line, Region* region) {
  std::istringstream words(line);
  std::string range, device, inode;
  if (!(words >> range >> region->permissions >> region->offset >> device >> inode)) return false;
  std::getline(words >> std::ws, region->path);
  const char* const end = range.data() + range.size();
  const auto low = std::from_chars(range.data(), end, region->start, 16);
  if (low.ec != std::errc() || low.ptr == end) return false;
  return std::from_chars(low.ptr + 1, end, region->end, 16).ec == std::errc();
}

// The map of `file` from its start, of this size, that is nobody's.
const char* FindNew(const std::string& file, size_t bytes) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    Region region;
    if (!Parse(line, &region) || region.end - region.start != bytes) continue;
    const bool from_start = region.offset.find_first_not_of('0') == std::string::npos;
    const auto* const start = reinterpret_cast<const char*>(region.start);
    if (from_start && region.path == file && !Owned().contains(start)) return start;
  }
  return nullptr;
}

}  // namespace

std::mutex& LmdbMap::Mutex() {
  static std::mutex mutex;
  return mutex;
}

LmdbMap::LmdbMap(const std::string& path, MDB_env* env) {
  MDB_envinfo info;
  std::error_code failed;
  const std::string file = std::filesystem::canonical(path + "/data.mdb", failed).string();
  if (failed || mdb_env_info(env, &info) != MDB_SUCCESS) return;
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t bytes = (info.me_mapsize + page - 1) / page * page;
  start_ = FindNew(file, bytes);
  if (start_ == nullptr) return;
  Owned().insert(start_);
  named_ = std::make_unique<MappedFile>(path, start_, bytes);
}

LmdbMap::~LmdbMap() {
  const std::lock_guard lock(Mutex());
  Owned().erase(start_);
}

bool LmdbMap::Holds(const void* data, size_t bytes, size_t file_bytes) const {
  if (start_ == nullptr) return true;
  const auto offset = static_cast<size_t>(static_cast<const char*>(data) - start_);
  return offset <= file_bytes && bytes <= file_bytes - offset;
}

}  // namespace trainer

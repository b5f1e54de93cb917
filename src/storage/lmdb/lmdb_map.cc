#include "lmdb/lmdb_map.h"

#include <unistd.h>

#include <filesystem>
#include <set>

#include "lmdb/memory_maps.h"

namespace trainer {
namespace {

// The maps that belong to an environment already: a database may be open several times.
std::set<const char*>& Owned() {
  static std::set<const char*> owned;
  return owned;
}

// Finds the mapping of `file` from its start with this size that has no LmdbMap yet.
const char* FindNew(const std::string& file, size_t bytes) {
  MemoryMap map;
  for (MemoryMaps maps; maps.Next(&map);) {
    const auto* const start = reinterpret_cast<const char*>(map.start);
    if (map.file == file && map.offset == 0 && map.end - map.start == bytes &&
        !Owned().contains(start)) {
      return start;
    }
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
  int fd = -1;
  std::error_code failed;
  const std::string file = std::filesystem::canonical(path + "/data.mdb", failed).string();
  if (failed || mdb_env_info(env, &info) != MDB_SUCCESS ||
      mdb_env_get_fd(env, &fd) != MDB_SUCCESS) {
    return;
  }
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t bytes = (info.me_mapsize + page - 1) / page * page;
  start_ = FindNew(file, bytes);
  if (start_ == nullptr) return;
  Owned().insert(start_);
  named_ = std::make_unique<MappedRange>(path, start_, bytes, fd);
}

LmdbMap::~LmdbMap() {
  const std::lock_guard lock(Mutex());
  Owned().erase(start_);
}

bool LmdbMap::Contains(const void* data, size_t bytes, size_t file_bytes) const {
  if (start_ == nullptr) return true;
  const auto offset = static_cast<size_t>(static_cast<const char*>(data) - start_);
  return offset <= file_bytes && bytes <= file_bytes - offset;
}

}  // namespace trainer

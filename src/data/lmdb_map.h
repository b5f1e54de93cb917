#pragma once

#include <lmdb.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "trainer/data/map_faults.h"

namespace trainer {

// Where LMDB mapped the file of an environment that was just opened: LMDB itself does not say.
class LmdbMap {
 public:
  // Held from before the environment is opened until this is made; otherwise two that are opened at
  // once could be taken for each other.
  static std::mutex& Mutex();

  LmdbMap(const std::string& path, MDB_env* env);
  ~LmdbMap();  // after the environment
  LmdbMap(const LmdbMap&) = delete;
  LmdbMap& operator=(const LmdbMap&) = delete;

  // Whether `bytes` from `data` are within the first `file_bytes` of the map; true where the map
  // could not be found (no /proc).
  bool Holds(const void* data, size_t bytes, size_t file_bytes) const;
  // Where `data`, which is held, lies in the file; 0 where the map could not be found.
  uint64_t OffsetOf(const void* data) const {
    return start_ == nullptr ? 0 : static_cast<uint64_t>(static_cast<const char*>(data) - start_);
  }

 private:
  const char* start_ = nullptr;
  std::unique_ptr<MappedFile> named_;
};

}  // namespace trainer

#pragma once

#include <lmdb.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "trainer/storage/fault_guard.h"

namespace trainer {

// Finds where LMDB mapped the file of an environment that was just opened; LMDB does not say it.
class LmdbMap {
 public:
  // Locked from before the environment is opened until the LmdbMap exists; otherwise two
  // environments that are opened at the same time could be confused.
  static std::mutex& Mutex();

  LmdbMap(const std::string& path, MDB_env* env);
  ~LmdbMap();  // after the environment
  LmdbMap(const LmdbMap&) = delete;
  LmdbMap& operator=(const LmdbMap&) = delete;

  // Whether `bytes` from `data` are within the first `file_bytes` of the map; true if the map was
  // not found (no /proc).
  bool Contains(const void* data, size_t bytes, size_t file_bytes) const;
  // Offset of `data` in the file; `data` is within the map. Returns 0 if the map was not found.
  uint64_t OffsetOf(const void* data) const {
    return start_ == nullptr ? 0 : static_cast<uint64_t>(static_cast<const char*>(data) - start_);
  }

 private:
  const char* start_ = nullptr;
  std::unique_ptr<MappedRange> named_;
};

}  // namespace trainer

#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "trainer/storage/record_writer.h"

namespace trainer {

// `shard_bytes`: see WriteOptions.
std::unique_ptr<RecordWriter> CreateTarSet(const std::string& path, uint64_t shard_bytes);

}  // namespace trainer

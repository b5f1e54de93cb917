#pragma once
// Sets of images in tar files by WebDataset's names: key.jpg or key.png; the label in key.cls,
// several labels in key.json or key.npy.

#include <cstdint>
#include <memory>
#include <string>

#include "trainer/storage/cursor.h"
#include "trainer/storage/record_writer.h"

namespace trainer {

std::unique_ptr<Cursor> OpenTar(const std::string& source);

// `shard_bytes`: see WriteOptions.
std::unique_ptr<RecordWriter> CreateTarSet(const std::string& path, uint64_t shard_bytes);

}  // namespace trainer

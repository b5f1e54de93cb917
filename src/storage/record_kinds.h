#pragma once
// The kinds of sets, each in a file of its own.

#include <memory>
#include <string>

#include "trainer/storage/record_set.h"

namespace trainer {

std::unique_ptr<RecordReader> OpenHdf5Records(const std::string& path);
std::unique_ptr<RecordWriter> MakeHdf5Records(const std::string& path);
std::unique_ptr<RecordWriter> MakeTarRecords(const std::string& path, uint64_t shard_bytes);

// Throws kCannotCreate where something is at `path`.
void RefuseExisting(const std::string& path);

}  // namespace trainer

#pragma once

#include <memory>
#include <string>

#include "trainer/storage/record_writer.h"

namespace trainer {

std::unique_ptr<RecordWriter> CreateHdf5Set(const std::string& path);

}  // namespace trainer

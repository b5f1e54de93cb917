#pragma once

#include <memory>
#include <string>

#include "trainer/storage/array_file.h"

namespace trainer {

// See OpenArrayFile.
std::unique_ptr<ArrayFile> OpenNumpyFile(const std::string& path);

}  // namespace trainer

#pragma once

#include <memory>
#include <string>

#include "trainer/storage/array_writer.h"

namespace trainer {

// See OpenArrayWriter.
std::unique_ptr<ArrayWriter> OpenNumpyWriter(const std::string& path);

}  // namespace trainer

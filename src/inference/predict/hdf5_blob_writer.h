#pragma once

#include <memory>
#include <string>
#include <vector>

#include "predict/blob_writer.h"

namespace trainer {

// See MakeBlobWriter.
std::unique_ptr<BlobWriter> MakeHdf5Writer(const std::vector<std::string>& blobs,
                                           const std::string& path, bool replace);

}  // namespace trainer

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "predict/blob_writer.h"

namespace trainer {

// Writes all blobs to one file (see OpenArrayWriter). See MakeBlobWriter.
std::unique_ptr<BlobWriter> MakeArrayBlobWriter(const std::vector<std::string>& blobs,
                                                const std::string& path, bool replace);

}  // namespace trainer

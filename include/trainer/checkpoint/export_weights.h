#pragma once
// What `trainer export` does with weights.

#include <span>
#include <string>

namespace trainer {

// Returns whether a file of this name gets weights alone: .safetensors, .npz, .h5, .caffemodel.
bool IsNamedAsWeights(const std::string& path);

// Reads weights as ReadModel does, and writes them in the format that the name of `out` selects. Of
// a layer in several files the last one counts. `net_file`: see ReadModel; "" for none. If none of
// the files has a tensor of TensorNamesFile, that table gives the names of the tensors in `out`.
// Returns a line for the user. Throws kUsage if that table fits neither a file nor `out`, and as
// ReadModel, WriteModel and WriteTensorModel do.
std::string ExportWeights(std::span<const std::string> files, const std::string& net_file,
                          const std::string& out);

}  // namespace trainer

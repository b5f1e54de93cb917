#pragma once
// Decides by layer type what a data layer reads; no other code decides this.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/config/layer_spec.h"

namespace trainer {

struct InputFiles {
  enum class Kind { kDatabase, kTar, kHdf5List, kImageList, kWindowList };

  Kind kind = Kind::kDatabase;
  std::string format;  // "LMDB", "LEVELDB", "TAR", "HDF5"; "files" for lists of images and windows
  const char* param = "";  // the name of the layer's message: "data_param"
  std::string path;        // as it is opened; "" if the layer names no source
  std::string root;        // prefixed to each path of a list of images or windows
  uint32_t batch_size = 0;
  bool balanced = false;  // sampling: BALANCED

  // Returns the files, in the order of a list. Throws as the readers of lists and FilesOfSet do.
  std::vector<std::string> Files() const;
};

// Returns what a Data, ImageData, WindowData or HDF5Data layer reads; nullopt for other layers.
std::optional<InputFiles> InputFilesOf(const LayerSpec& layer);

}  // namespace trainer

#pragma once
// Layers that write files of their own.

#include <cstdint>
#include <string>

namespace trainer {

// The files that such a layer may write. It never replaces a file.
enum class OutputFiles : uint8_t {
  kDisabled,   // write nothing: the net is only measured, drawn, planned, ...
  kCheckOnly,  // refuse the same files as kCreate, and write nothing
  kCreate,     // make files; refuse one that exists before the first pass
  kResume,     // a resumed run: if the file exists, make the next one: NAME_2, NAME_3, ...
};

// A layer that derives from this writes nothing until Allow permits it.
class FileWriter {
 public:
  virtual ~FileWriter() = default;
  // Called once, after the layer was made and before its first Setup. `snapshot_folder` is where
  // the run writes its snapshots; "" if it writes none. Throws kCannotCreate or kConfig at the
  // layer's line if a file cannot be written.
  virtual void Allow(OutputFiles files, const std::string& snapshot_folder) = 0;
};

}  // namespace trainer

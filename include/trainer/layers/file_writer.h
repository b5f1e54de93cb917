#pragma once
// Layers that write files of their own.

#include <cstdint>
#include <string>

namespace trainer {

// What such a layer may do. It never replaces a file.
enum class OutputFiles : uint8_t {
  kDisabled,   // nothing: the net is measured, drawn, planned, ...
  kCheckOnly,  // refuse what kNew would, and write nothing
  kCreate,     // make files; one that is there already is refused before the first pass
  kResume,  // a run that goes on: where the file is there, make the next one: NAME_2, NAME_3, ...
};

// A layer derives from this as well, and writes nothing until it is told that it may.
class FileWriter {
 public:
  virtual ~FileWriter() = default;
  // Once, after the layer was made and before its first Plan. `snapshot_folder`: where the run
  // writes its snapshots; "" where it writes none. Throws kCannotCreate or kConfig at the layer's
  // line for what cannot be written.
  virtual void Allow(OutputFiles files, const std::string& snapshot_folder) = 0;
};

}  // namespace trainer

#pragma once
// What layers that write files of their own may do.

#include <cstdint>

namespace trainer {

// A layer never replaces a file.
enum class OutputFiles : uint8_t {
  kDisabled,   // nothing: the net is measured, drawn, planned, ...
  kCheckOnly,  // refuse what kNew would, and write nothing
  kCreate,     // make files; one that is there already is refused before the first pass
  kResume,  // a run that goes on: where the file is there, make the next one: NAME_2, NAME_3, ...
};

}  // namespace trainer

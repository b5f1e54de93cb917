#pragma once
// Whether layers that write files of their own may do so.

#include <cstdint>

namespace trainer {

// A layer never replaces a file.
enum class OutputFiles : uint8_t {
  kDisabled,   // no files: the net is only measured, drawn or planned
  kCheckOnly,  // refuse the files that kCreate would, and write nothing
  kCreate,     // make files; an existing one is refused before the first pass
  kResume,     // for a resumed run: if the file exists, make NAME_2, NAME_3, ...
};

}  // namespace trainer

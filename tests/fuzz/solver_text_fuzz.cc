// A solver's prototxt: parsing and every check that needs no net to be built. A net that it names
// by path is read as well; the inputs of the corpus carry theirs inside.

#include "fuzz/fuzz_target.h"
#include "fuzz/memory_file.h"
#include "trainer/config/solver_spec.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return trainer::ExpectRefusalOrSuccess([&] {
    const trainer::MemoryFile file(data, size);
    trainer::LoadSolver(file.path());
  });
}

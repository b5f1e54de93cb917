// Reads a solver's prototxt: parsing and every check that needs no net. If the solver gives a net
// by path, that file is read too; the inputs of the corpus contain their nets.

#include "fuzz/fuzz_target.h"
#include "fuzz/memory_file.h"
#include "trainer/config/solver_spec.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return trainer::ExpectRefusalOrSuccess([&] {
    const trainer::MemoryFile file(data, size);
    trainer::LoadSolver(file.path());
  });
}

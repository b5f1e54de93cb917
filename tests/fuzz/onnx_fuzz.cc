// Imports an ONNX model: parsing, constant folding, and the net that is built from it.

#include "fuzz/fuzz_target.h"
#include "fuzz/memory_file.h"
#include "trainer/onnx/import_onnx.h"
#include "trainer/onnx/onnx_file.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return trainer::ExpectRefusalOrSuccess([&] {
    const trainer::MemoryFile file(data, size);
    trainer::ImportOnnx(trainer::ReadOnnx(file.path()), file.path(), {.shapes = {{"", {2, 4, 4}}}});
  });
}

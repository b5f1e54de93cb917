#include "trainer/data/batch.h"

namespace trainer {

Batch MakeBatch(std::span<const Shape> shapes, std::pmr::memory_resource* memory) {
  Batch batch;
  if (memory == nullptr) memory = std::pmr::get_default_resource();
  for (const Shape& shape : shapes) {
    batch.buffers_.emplace_back(static_cast<size_t>(shape.Count()), memory);
  }
  return batch;
}

}  // namespace trainer

#include "trainer/data/batch.h"

namespace trainer {

Batch MakeBatch(std::span<const Shape> shapes) {
  Batch batch;
  for (const Shape& shape : shapes) batch.buffers_.emplace_back(static_cast<size_t>(shape.Count()));
  return batch;
}

}  // namespace trainer

#include "trainer/data/batch.h"

namespace trainer {

Batch MakeBatch(std::span<const Shape> shapes, std::pmr::memory_resource* memory, BatchForm form) {
  Batch batch;
  if (memory == nullptr) memory = std::pmr::get_default_resource();
  for (const Shape& shape : shapes) {
    const bool bytes = form == BatchForm::kBytes && batch.buffers_.empty();
    batch.buffers_.emplace_back(bytes ? 0 : static_cast<size_t>(shape.Count()), memory);
  }
  batch.numbers_.resize(shapes.empty() ? 0 : static_cast<size_t>(shapes[0][0]));
  if (form != BatchForm::kBytes) return batch;
  const auto count = static_cast<size_t>(shapes[0].Count());
  const auto images = static_cast<size_t>(shapes[0][0]);
  batch.bytes_.reset(new Batch::Bytes{std::pmr::vector<uint8_t>(count, memory),
                                      std::pmr::vector<PixelWindow>(images, memory),
                                      std::pmr::vector<float>(images, memory)});
  return batch;
}

}  // namespace trainer

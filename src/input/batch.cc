#include "trainer/input/batch.h"

namespace trainer {

Batch MakeBatch(std::span<const Shape> shapes, std::pmr::memory_resource* memory, PixelType type) {
  Batch batch;
  if (memory == nullptr) memory = std::pmr::get_default_resource();
  for (const Shape& shape : shapes) {
    const bool bytes = type == PixelType::kByte && batch.buffers_.empty();
    batch.buffers_.emplace_back(bytes ? 0 : static_cast<size_t>(shape.Count()), memory);
  }
  batch.numbers_.resize(shapes.empty() ? 0 : static_cast<size_t>(shapes[0][0]));
  if (type != PixelType::kByte) return batch;
  const auto count = static_cast<size_t>(shapes[0].Count());
  const auto images = static_cast<size_t>(shapes[0][0]);
  batch.bytes_.reset(new Batch::Bytes{
      std::pmr::vector<uint8_t>(count, memory), std::pmr::vector<CropOffset>(images, memory),
      std::pmr::vector<float>(images, memory), std::pmr::vector<CutBox>(images, memory)});
  return batch;
}

}  // namespace trainer

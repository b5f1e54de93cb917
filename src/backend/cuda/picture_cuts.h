#pragma once
// Windows of pictures that were decoded into a GPU's memory, cut there.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cuda/picture_memory.h"
#include "cuda/runtime.h"
#include "trainer/image/pixel_window.h"

namespace trainer::cuda {

class CudaDevice;

// What memory for pictures holds before they are written to it.
inline constexpr unsigned char kUnwritten = 0xA5;

// Of one picture (C, H, W), to (H, W, C).
struct PictureCut {
  const uint8_t* picture = nullptr;
  uint8_t* to = nullptr;
  int32_t height = 0, width = 0;  // of the picture
  PixelWindow window;
};

// Used by one thread.
class PictureCutter {
 public:
  explicit PictureCutter(const CudaDevice& device);

  // Memory for so many cuts, the only thing that may be lacking. What is queued must be done.
  void Reserve(size_t cuts);
  void Clear() { cuts_.clear(); }
  void Add(const PictureCut& cut) { cuts_.push_back(cut); }
  size_t size() const { return cuts_.size(); }

  // Queues all of them, of windows of this size, in one kernel.
  void Run(int channels, int height, int width, Stream stream);
  // When that is done: whether the first and the last row of the picture of cut i hold anything
  // but kUnwritten.
  bool WasWritten(size_t i) const;

 private:
  size_t RowsAt() const { return cuts_.size() * sizeof(PictureCut); }

  const CudaDevice& device_;
  std::vector<PictureCut> cuts_;
  // The cuts; behind them two bytes for each, 1 where the first and the last row is written.
  GrowingBlock host_, gpu_;
};

}  // namespace trainer::cuda

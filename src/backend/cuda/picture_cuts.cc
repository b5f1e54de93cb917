#include "cuda/picture_cuts.h"

#include <cstring>

#include "cuda/cuda_device.h"
#include "cuda/errors.h"
#include "cuda/loops.h"

namespace trainer::cuda {
namespace {

constexpr size_t kGpuPictureCutsRows = 2;  // of a picture that are looked at

struct CutPixel {
  const PictureCut* cuts;
  uint8_t* written;  // kGpuPictureCutsRows for each cut
  int64_t channels, width;

  HD void operator()(int64_t i, int64_t h, int64_t w, int64_t) const {
    const PictureCut cut = cuts[i];  // which a byte that is written might else be
    const int64_t row = cut.width, plane = row * cut.height;
    uint8_t* const to = cut.to + (h * width + w) * channels;
    for (int64_t c = 0; c < channels; ++c) {
      to[c] = cut.picture[ElementOf(cut.window, row, plane, width, h, w, c)];
    }
    if (h > 0) return;
    const uint8_t* const last = cut.picture + channels * plane - row;
    for (int64_t x = w; x < row; x += width) {
      if (cut.picture[x] != kUnwritten) written[kGpuPictureCutsRows * i] = 1;
      if (last[x] != kUnwritten) written[kGpuPictureCutsRows * i + 1] = 1;
    }
  }
};

}  // namespace

PictureCutter::PictureCutter(const CudaDevice& device)
    : device_(device), host_(device.HostMemory()), gpu_(device.CutMemory()) {}

void PictureCutter::Reserve(size_t cuts) {
  const size_t bytes = cuts * (sizeof(PictureCut) + kGpuPictureCutsRows);
  host_.Reserve(bytes);
  gpu_.Reserve(bytes);
}

void PictureCutter::Run(int channels, int height, int width, Stream stream) {
  if (cuts_.empty()) return;
  const size_t rows = cuts_.size() * kGpuPictureCutsRows;
  std::memcpy(host_.data(), cuts_.data(), RowsAt());
  std::memset(host_.data() + RowsAt(), 0, rows);
  Check(
      GetRuntime()->MemcpyAsync(gpu_.data(), host_.data(), RowsAt() + rows, kHostToDevice, stream),
      "telling it what to cut (cudaMemcpyAsync)");
  const LaunchesOn queue(device_, stream);
  Loops(device_).ForImages(static_cast<int64_t>(cuts_.size()), height, width, 1,
                           CutPixel{reinterpret_cast<const PictureCut*>(gpu_.data()),
                                    gpu_.data() + RowsAt(), channels, width});
  Check(GetRuntime()->MemcpyAsync(host_.data() + RowsAt(), gpu_.data() + RowsAt(), rows,
                                  kDeviceToHost, stream),
        "asking which pictures it decoded (cudaMemcpyAsync)");
}

bool PictureCutter::WasWritten(size_t i) const {
  const uint8_t* const written = host_.data() + RowsAt() + kGpuPictureCutsRows * i;
  return written[0] != 0 && written[1] != 0;
}

}  // namespace trainer::cuda

#pragma once
// nvJPEG on one GPU.

#include <memory>
#include <string>

#include "cuda/nvjpeg.h"
#include "trainer/image/jpeg_unit.h"

namespace trainer::cuda {

class CudaDevice;

// The library's handle, which all units of a device share.
class JpegDecoders {
 public:
  // Null with a sentence where the library cannot be used on this GPU.
  static std::unique_ptr<JpegDecoders> Make(const CudaDevice& device, std::string* why);
  ~JpegDecoders();
  JpegDecoders(const JpegDecoders&) = delete;
  JpegDecoders& operator=(const JpegDecoders&) = delete;

  // Any thread.
  std::unique_ptr<JpegUnit> MakeUnit() const;
  // Whether the GPU has an engine for it, beside what computes.
  bool hardware() const { return hardware_; }

 private:
  JpegDecoders(const CudaDevice& device, const Nvjpeg& nvjpeg) : device_(device), nvjpeg_(nvjpeg) {}

  const CudaDevice& device_;
  const Nvjpeg& nvjpeg_;
  nvjpeg::Handle handle_ = nullptr;
  bool hardware_ = false;
};

}  // namespace trainer::cuda

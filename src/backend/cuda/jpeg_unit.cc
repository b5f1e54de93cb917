// Pictures are decoded on a queue of their own, beside the computations. What is wanted of them is
// cut out on the GPU, and stays there; or they come to the host as bytes.

#include "cuda/jpeg_unit.h"

#include <algorithm>
#include <vector>

#include "cuda/cuda_device.h"
#include "cuda/order.h"
#include "cuda/picture_cuts.h"
#include "cuda/picture_memory.h"
#include "trainer/base/error.h"
#include "trainer/base/text.h"

namespace trainer::cuda {
namespace {

constexpr size_t kMost = size_t{64} << 20;  // memory of a unit, on the GPU and on the host
constexpr size_t kAlign = 256;              // of a picture in it

[[noreturn]] void FailForMemory(const char* call) {
  throw Error(ErrorCode::kResource,
              Join("nvJPEG found no memory on the GPU (", call,
                   "); train with a smaller batch, or decode on the host: --nogpu_decode"));
}

// Whether a whole row holds nothing but what was there before: the library reports one status for
// all pictures of a call, also where it left one out.
bool IsUnwritten(const uint8_t* row, int width) {
  return std::all_of(row, row + width, [](uint8_t byte) { return byte == kUnwritten; });
}

class NvjpegUnit final : public JpegUnit {
 public:
  NvjpegUnit(const CudaDevice& device, const Nvjpeg& nvjpeg, nvjpeg::Handle handle)
      : device_(device),
        nvjpeg_(nvjpeg),
        handle_(handle),
        memory_(device.CutMemory()),
        host_(device.HostMemory()),
        cutter_(device) {
    if (const int status = nvjpeg_.JpegStateCreate(handle_, &state_); status != nvjpeg::kSuccess) {
      if (status == nvjpeg::kAllocatorFailure) FailForMemory("nvjpegJpegStateCreate");
      throw Error(ErrorCode::kUnavailable,
                  Join("nvJPEG cannot be used on this GPU: status ", status,
                       " of nvjpegJpegStateCreate; decode on the host: --nogpu_decode"));
    }
  }
  // A lost GPU refuses all of it.
  ~NvjpegUnit() override {
    const Runtime& runtime = *GetRuntime();
    runtime.SetDevice(device_.options().id);
    runtime.StreamSynchronize(stream_.get());
    nvjpeg_.JpegStateDestroy(state_);
  }
  NvjpegUnit(const NvjpegUnit&) = delete;
  NvjpegUnit& operator=(const NvjpegUnit&) = delete;

  size_t Decode(std::span<JpegTask> tasks) override {
    device_.Use();
    const size_t count = Place(tasks);
    if (pictures_.empty()) return count;
    const bool cuts = pictures_[0].task->cuts.to != nullptr;
    memory_.Reserve(used_);
    cuts ? cutter_.Reserve(num_windows_) : host_.Reserve(used_);
    const Runtime& runtime = *GetRuntime();
    Check(runtime.MemsetAsync(memory_.data(), kUnwritten, used_, stream_.get()),
          "preparing memory for pictures (cudaMemsetAsync)");
    if (!Run(pictures_)) {  // each by itself, so that one that is bad decides nothing of others
      for (size_t i = 0; i < pictures_.size(); ++i) {
        pictures_[i].good = Run({&pictures_[i], 1});
      }
    }
    cuts ? CutWindows() : CopyToHost();
    return count;
  }

 private:
  struct Picture {
    JpegTask* task;
    size_t offset;
    bool good = true;  // as far as the library says
  };

  // Gives the first tasks their places, as many as there is room for. Those that do not fit at all
  // are left to others.
  size_t Place(std::span<JpegTask> tasks) {
    pictures_.clear();
    used_ = num_windows_ = 0;
    for (size_t i = 0; i < tasks.size(); ++i) {
      JpegTask& task = tasks[i];
      task.decoded = false;
      task.pixels = nullptr;
      const size_t bytes = (task.form.Bytes() + kAlign - 1) / kAlign * kAlign;
      if (task.bytes.empty() || bytes > kMost) continue;
      if (used_ + bytes > kMost) return i;
      pictures_.push_back({&task, used_});
      used_ += bytes;
      num_windows_ += task.cuts.windows.size();
    }
    return tasks.size();
  }

  // Queues the decoding of these. Whether the library takes them.
  bool Run(std::span<const Picture> pictures) {
    if (!Initialize(pictures.size(), pictures[0].task->form.channels)) return false;
    data_.clear();
    lengths_.clear();
    images_.clear();
    for (const Picture& picture : pictures) {
      const std::string_view bytes = picture.task->bytes;
      const PictureForm& form = picture.task->form;
      data_.push_back(reinterpret_cast<const unsigned char*>(bytes.data()));
      lengths_.push_back(bytes.size());
      nvjpeg::Image& image = images_.emplace_back();
      const size_t plane = form.Bytes() / static_cast<size_t>(form.channels);
      for (int c = 0; c < form.channels; ++c) {
        image.channel[c] = memory_.data() + picture.offset + static_cast<size_t>(c) * plane;
        image.pitch[c] = static_cast<size_t>(form.width);
      }
    }
    const int status = nvjpeg_.DecodeBatched(handle_, state_, data_.data(), lengths_.data(),
                                             images_.data(), stream_.get());
    if (status == nvjpeg::kSuccess) return true;
    if (status == nvjpeg::kAllocatorFailure) FailForMemory("nvjpegDecodeBatched");
    initialized_ = {};  // also what brings it out of a failed call
    Wait();
    return false;
  }

  bool Initialize(size_t pictures, int channels) {
    if (initialized_ == Initialized{pictures, channels}) return true;
    const int status =
        nvjpeg_.DecodeBatchedInitialize(handle_, state_, static_cast<int>(pictures), 1,
                                        channels == 1 ? nvjpeg::kOutputY : nvjpeg::kOutputBgr);
    if (status == nvjpeg::kAllocatorFailure) FailForMemory("nvjpegDecodeBatchedInitialize");
    initialized_ = status == nvjpeg::kSuccess ? Initialized{pictures, channels} : Initialized{};
    return status == nvjpeg::kSuccess;
  }

  void Wait() {
    Check(GetRuntime()->StreamSynchronize(stream_.get()),
          "decoding pictures (cudaStreamSynchronize)");
  }

  void CutWindows() {
    cutter_.Clear();
    for (const Picture& picture : pictures_) {
      if (!picture.good) continue;
      const auto& [bytes, form, cuts, decoded, pixels] = *picture.task;
      uint8_t* to = cuts.to;
      for (const PixelWindow& window : cuts.windows) {
        cutter_.Add({memory_.data() + picture.offset, to, form.height, form.width, window});
        to += form.channels * cuts.height * cuts.width;
      }
    }
    const JpegTask& first = *pictures_[0].task;
    cutter_.Run(first.form.channels, first.cuts.height, first.cuts.width, stream_.get());
    Wait();
    size_t cut = 0;
    for (const Picture& picture : pictures_) {
      if (!picture.good) continue;
      picture.task->decoded = cutter_.WasWritten(cut);
      cut += picture.task->cuts.windows.size();
    }
  }

  void CopyToHost() {
    Check(GetRuntime()->MemcpyAsync(host_.data(), memory_.data(), used_, kDeviceToHost,
                                    stream_.get()),
          "copying pictures to the host (cudaMemcpyAsync)");
    Wait();
    for (const Picture& picture : pictures_) {
      if (!picture.good || IsLeftOut(picture)) continue;
      picture.task->decoded = true;
      picture.task->pixels = host_.data() + picture.offset;
    }
  }

  bool IsLeftOut(const Picture& picture) const {
    const PictureForm& form = picture.task->form;
    const uint8_t* const pixels = host_.data() + picture.offset;
    const size_t last_row = form.Bytes() - static_cast<size_t>(form.width);
    return IsUnwritten(pixels, form.width) || IsUnwritten(pixels + last_row, form.width);
  }

  struct Initialized {
    size_t pictures = 0;
    int channels = 0;
    bool operator==(const Initialized&) const = default;
  };

  const CudaDevice& device_;
  const Nvjpeg& nvjpeg_;
  nvjpeg::Handle handle_;
  nvjpeg::State state_ = nullptr;
  GrowingBlock memory_, host_;  // of the GPU; the same for the host where it gets all of it
  size_t used_ = 0;             // of either
  PictureCutter cutter_;
  size_t num_windows_ = 0;
  OwnStream stream_{"making a queue for pictures (cudaStreamCreate)"};
  Initialized initialized_;
  std::vector<Picture> pictures_;
  std::vector<const unsigned char*> data_;
  std::vector<size_t> lengths_;
  std::vector<nvjpeg::Image> images_;
};

}  // namespace

std::unique_ptr<JpegDecoders> JpegDecoders::Make(const CudaDevice& device, std::string* why) {
  const Nvjpeg* const nvjpeg = GetNvjpeg(why);
  if (nvjpeg == nullptr) return nullptr;
  device.Use();
  std::unique_ptr<JpegDecoders> decoders(new JpegDecoders(device, *nvjpeg));
  int status = 0;
  for (const int backend : {nvjpeg::kHardware, nvjpeg::kGpuHybrid}) {
    status = nvjpeg->CreateEx(backend, nullptr, nullptr, nvjpeg::kInterpolate, &decoders->handle_);
    GetRuntime()->GetLastError();  // which a refusal may leave behind
    decoders->hardware_ = backend == nvjpeg::kHardware;
    if (status == nvjpeg::kSuccess) return decoders;
    decoders->handle_ = nullptr;
  }
  *why = Join("nvJPEG cannot be used on this GPU: status ", status,
              " of nvjpegCreateEx. The host decodes all pictures");
  return nullptr;
}

JpegDecoders::~JpegDecoders() {
  if (handle_ == nullptr) return;
  GetRuntime()->SetDevice(device_.options().id);
  nvjpeg_.Destroy(handle_);
}

std::unique_ptr<JpegUnit> JpegDecoders::MakeUnit() const {
  device_.Use();
  return std::make_unique<NvjpegUnit>(device_, nvjpeg_, handle_);
}

}  // namespace trainer::cuda

#include "data/batch_upload.h"

#include <type_traits>

#include "trainer/backend/loops/map.h"
#include "trainer/backend/primitives/strided_copy.h"
#include "trainer/input/normalize.h"

namespace trainer {
namespace {

struct WithOneMean {
  const uint8_t* pixel;
  const float* mean;  // null: 0
  float scale;
  HD float operator()(int64_t i) const {
    return PixelNumber(pixel[i], mean == nullptr ? 0.0f : *mean, scale);
  }
};

struct WithChannelMeans {
  const uint8_t* pixel;
  const float* mean;
  int64_t channels;
  float scale;
  HD float operator()(int64_t i) const { return PixelNumber(pixel[i], mean[i % channels], scale); }
};

struct WithMeanImage {
  const uint8_t* pixel;
  const float* mean;
  const CropOffset* window;
  int64_t channels, width, item;  // of the output: elements of one image, fewer than 2^32
  int64_t mean_row, mean_plane;
  float scale;
  HD float operator()(int64_t i) const {
    const int64_t image = i / item;
    const CropOffset from = window[image];
    const auto at = static_cast<uint32_t>(i - image * item),
               planes = static_cast<uint32_t>(channels);
    const auto across = static_cast<uint32_t>(width);
    const uint32_t place = at / planes, h = place / across, w = place - h * across;
    const int64_t c = at - place * planes;
    return PixelNumber(pixel[i], mean[ElementOf(from, mean_row, mean_plane, width, h, w, c)],
                       scale);
  }
};

template <class Number>
struct Plain {
  Number number;  // (i): what element i of the batch is
  float* to;
  HD void operator()(int64_t i) const { to[i] = number(i); }
};

// Each image with the next one, the last with the first.
template <class Number>
struct Mixed {
  Number number;
  const float* share;
  int64_t item, count;  // elements of one image, of all
  float* to;
  HD void operator()(int64_t i) const {
    const int64_t next = i + item < count ? i + item : i + item - count;
    to[i] = MixedNumber(share[i / item], number(i), number(next));
  }
};

// `share`: null where images are not mixed.
void MakeNumbers(const RunContext& run, const Normalization& numbers, const uint8_t* pixels,
                 const CropOffset* windows, const float* share) {
  const Tensor& out = run.Output(0);
  const auto write = [&](const auto& number) {
    using Number = std::decay_t<decltype(number)>;
    if (share == nullptr) {
      ForEach(run.device(), out.Count(), Plain<Number>{number, out.f32()});
    } else {
      ForEach(run.device(), out.Count(),
              Mixed<Number>{number, share, out.shape.Count(1), out.Count(), out.f32()});
    }
  };
  const float* const mean = numbers.mean.empty() ? nullptr : run.Constants();
  const int64_t channels = out.shape[1], width = out.shape[3];
  if (numbers.mean_plane > 0) {
    write(WithMeanImage{pixels, mean, windows, channels, width, out.shape.Count(1),
                        numbers.mean_row, numbers.mean_plane, numbers.scale});
  } else if (numbers.mean.size() > 1) {
    write(WithChannelMeans{pixels, mean, channels, numbers.scale});
  } else {
    write(WithOneMean{pixels, mean, numbers.scale});
  }
}

}  // namespace

BatchUpload::BatchUpload(const Device& device, const BatchQueue& prefetcher)
    : numbers_(prefetcher.normalization()), copies_(device.NewCopyStream()) {
  for (int i = 0; i < prefetcher.num_outputs(); ++i) {
    const Shape& shape = shapes_.emplace_back(prefetcher.shape(i));
    const bool bytes = i == 0 && numbers_ != nullptr;
    if (bytes) {
      pixels_ = layout_.Add<uint8_t>(shape.Count());
      windows_ = layout_.Add<CropOffset>(shape[0]);
      if (numbers_->mixed) shares_ = layout_.Add<float>(shape[0]);
    }
    outputs_.push_back(bytes ? ScratchRegion<float>() : layout_.Add<float>(shape.Count()));
  }
}

void BatchUpload::Send(const Batch& batch, int part, std::span<std::byte> staging) {
  if (first_) copies_->CopiesWaitForCompute();  // that made the memory what it is
  first_ = false;
  const auto send = [&](void* to, const auto& all, int64_t count) {
    const auto own = all.subspan(static_cast<size_t>(part * count), static_cast<size_t>(count));
    copies_->CopyToDevice(to, own.data(), own.size_bytes());
  };
  if (batch.has_bytes()) {
    send(pixels_.At(staging), batch.pixels(), shapes_[0].Count());
    send(windows_.At(staging), batch.windows(), shapes_[0][0]);
    if (numbers_->mixed) send(shares_.At(staging), batch.shares(), shapes_[0][0]);
  }
  for (int i = batch.has_bytes() ? 1 : 0; i < batch.num_outputs(); ++i) {
    const auto at = static_cast<size_t>(i);
    send(outputs_[at].At(staging), batch.output(i), shapes_[at].Count());
  }
}

void BatchUpload::Unpack(const RunContext& run) {
  copies_->ComputeWaitsForCopies();
  if (numbers_ != nullptr) {
    MakeNumbers(run, *numbers_, pixels_.At(run.UploadMemory()), windows_.At(run.UploadMemory()),
                numbers_->mixed ? shares_.At(run.UploadMemory()) : nullptr);
  }
  for (int i = numbers_ != nullptr ? 1 : 0; i < run.NumOutputs(); ++i) {
    run.device().Copy(BlockCopy(sizeof(float), 1, run.Output(i).Count(), 0, 0),
                      outputs_[static_cast<size_t>(i)].At(run.UploadMemory()), run.Output(i).data);
  }
  copies_->CopiesWaitForCompute();
}

}  // namespace trainer

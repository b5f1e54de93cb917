#include "data/prefetching_data_layer.h"

#include <glog/logging.h>

#include <algorithm>
#include <iterator>
#include <type_traits>
#include <utility>
#include <vector>

#include "trainer/backend/loops/map.h"
#include "trainer/backend/memory/scratch_layout.h"
#include "trainer/backend/primitives/strided_copy.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/input/bad_records.h"
#include "trainer/input/normalize.h"

namespace trainer {
namespace {

// Returns the bad records of a batch. If an epoch ends in the batch, only the ones of the next
// epoch count, because the limit is per epoch. `epoch_before` is the epoch before the batch.
int64_t CountBadRecords(const Batch& batch, uint64_t epoch_before) {
  return batch.next.epoch == epoch_before ? batch.bad : static_cast<int64_t>(batch.next.bad);
}

// Returns element i of the batch, (pixel - mean) * scale with one mean for all elements.
struct WithOneMean {
  const uint8_t* pixel;
  const float* mean;  // null: 0
  float scale;
  HD float operator()(int64_t i) const {
    return PixelNumber(pixel[i], mean == nullptr ? 0.0f : *mean, scale);
  }
};

// Returns element i of the batch, normalised with the mean of its channel.
struct WithChannelMeans {
  const uint8_t* pixel;
  const float* mean;
  int64_t channels;
  float scale;
  HD float operator()(int64_t i) const { return PixelNumber(pixel[i], mean[i % channels], scale); }
};

// Returns element i of the batch, normalised with the pixel of the mean image that it was cropped
// from.
struct WithMeanImage {
  const uint8_t* pixel;
  const float* mean;
  const CropOffset* crop_offset;
  int64_t channels, width, item;  // of the output; item: elements of one image, below 2^32
  int64_t mean_row, mean_plane;
  float scale;
  HD float operator()(int64_t i) const {
    const int64_t image = i / item;
    const CropOffset from = crop_offset[image];
    const auto at = static_cast<uint32_t>(i - image * item),
               planes = static_cast<uint32_t>(channels);
    const auto across = static_cast<uint32_t>(width);
    const uint32_t place = at / planes, h = place / across, w = place - h * across;
    const int64_t c = at - place * planes;
    return PixelNumber(pixel[i], mean[ElementOf(from, mean_row, mean_plane, width, h, w, c)],
                       scale);
  }
};

// Writes element i of the batch.
template <class Number>
struct StorePixels {
  Number number;  // number(i) is element i of the batch
  float* to;
  HD void operator()(int64_t i) const { to[i] = number(i); }
};

// Writes element i of a batch with mixup: each image is mixed with the next one, and the last with
// the first, with the weight of the image.
template <class Number>
struct StoreMixedPixels {
  Number number;
  const float* mix_weight;
  int64_t item, count;  // elements of one image, and of the batch
  float* to;
  HD void operator()(int64_t i) const {
    const int64_t next = i + item < count ? i + item : i + item - count;
    to[i] = MixedNumber(mix_weight[i / item], number(i), number(next));
  }
};

// Writes element i of a batch with CutMix: the pixels in the box of an image are the next image's.
// Images with an empty box are mixed as StoreMixedPixels does.
template <class Number>
struct StoreCutPixels {
  StoreMixedPixels<Number> mixed;
  const CutBox* cut_box;
  int64_t channels, width;
  HD void operator()(int64_t i) const {
    const int64_t image = i / mixed.item;
    const CutBox box = cut_box[image];
    if (box.IsEmpty()) return mixed(i);
    const int64_t place = (i - image * mixed.item) / channels, h = place / width;
    const int64_t next =
        i + mixed.item < mixed.count ? i + mixed.item : i + mixed.item - mixed.count;
    mixed.to[i] = mixed.number(box.Holds(h, place - h * width) ? next : i);
  }
};

// Computes output 0 from the batch's bytes, all in device memory: subtracts the mean, scales, and
// mixes images unless `mix_weights` is null, with CutMix unless `cut_boxes` is null. The numbers
// equal the host's bit for bit.
void NormalizePixels(const RunContext& run, const Normalization& normalization,
                     const uint8_t* pixels, const CropOffset* crop_offsets,
                     const float* mix_weights, const CutBox* cut_boxes) {
  const Tensor& out = run.Output(0);
  const auto write = [&](const auto& number) {
    using Number = std::decay_t<decltype(number)>;
    const StoreMixedPixels<Number> mixed{number, mix_weights, out.shape.Count(1), out.Count(),
                                         out.f32()};
    if (mix_weights == nullptr) {
      ForEach(run.device(), out.Count(), StorePixels<Number>{number, out.f32()});
    } else if (cut_boxes == nullptr) {
      ForEach(run.device(), out.Count(), mixed);
    } else {
      ForEach(run.device(), out.Count(),
              StoreCutPixels<Number>{mixed, cut_boxes, out.shape[1], out.shape[3]});
    }
  };
  const float* const mean = normalization.mean.empty() ? nullptr : run.Constants();
  const int64_t channels = out.shape[1], width = out.shape[3];
  if (normalization.mean_plane > 0) {
    write(WithMeanImage{pixels, mean, crop_offsets, channels, width, out.shape.Count(1),
                        normalization.mean_row, normalization.mean_plane, normalization.scale});
  } else if (normalization.mean.size() > 1) {
    write(WithChannelMeans{pixels, mean, channels, normalization.scale});
  } else {
    write(WithOneMean{pixels, mean, normalization.scale});
  }
}

}  // namespace

// The device memory for one batch as the host holds it, and the copy stream that fills it. After
// Finish, the memory is free for the next batch as soon as the device has come that far.
class PrefetchingDataLayer::BatchUpload {
 public:
  BatchUpload(const Device& device, const BatchQueue& queue);

  // Bytes of the layer's upload memory.
  size_t Bytes() const { return layout_.Bytes(); }

  // Enqueues the copies of one virtual rank's rows of a batch, which must not change until
  // WaitForCopies returned.
  void Start(const Batch& batch, int virtual_rank, std::span<std::byte> memory);
  // Enqueues the kernels that compute the pass's outputs from the batch that was started.
  void Finish(const RunContext& run);
  void WaitForCopies() { copies_->WaitForCopies(); }

 private:
  const Normalization* normalization_;  // null: batches hold floats
  std::vector<Shape> shapes_;           // of one virtual rank's rows
  ScratchLayout layout_;
  ScratchRegion<uint8_t> pixels_;
  ScratchRegion<CropOffset> crop_offsets_;
  ScratchRegion<float> mix_weights_;
  ScratchRegion<CutBox> cut_boxes_;
  std::vector<ScratchRegion<float>> outputs_;  // 0 is unused if the batch holds pixels
  std::unique_ptr<CopyStream> copies_;
  bool first_ = true;
};

PrefetchingDataLayer::BatchUpload::BatchUpload(const Device& device, const BatchQueue& queue)
    : normalization_(queue.normalization()), copies_(device.NewCopyStream()) {
  for (int i = 0; i < queue.num_outputs(); ++i) {
    const Shape& shape = shapes_.emplace_back(queue.shape(i));
    const bool bytes = i == 0 && normalization_ != nullptr;
    if (bytes) {
      pixels_ = layout_.Add<uint8_t>(shape.Count());
      crop_offsets_ = layout_.Add<CropOffset>(shape[0]);
      if (normalization_->mixed) mix_weights_ = layout_.Add<float>(shape[0]);
      if (normalization_->cut) cut_boxes_ = layout_.Add<CutBox>(shape[0]);
    }
    outputs_.push_back(bytes ? ScratchRegion<float>() : layout_.Add<float>(shape.Count()));
  }
}

void PrefetchingDataLayer::BatchUpload::Start(const Batch& batch, int virtual_rank,
                                              std::span<std::byte> memory) {
  if (first_) copies_->CopiesWaitForCompute();  // that made the memory what it is
  first_ = false;
  const auto send = [&](void* to, const auto& all, int64_t count) {
    const auto own =
        all.subspan(static_cast<size_t>(virtual_rank * count), static_cast<size_t>(count));
    copies_->CopyToDevice(to, own.data(), own.size_bytes());
  };
  if (batch.has_bytes()) {
    send(pixels_.At(memory), batch.pixels(), shapes_[0].Count());
    send(crop_offsets_.At(memory), batch.crop_offsets(), shapes_[0][0]);
    if (normalization_->mixed) send(mix_weights_.At(memory), batch.mix_weights(), shapes_[0][0]);
    if (normalization_->cut) send(cut_boxes_.At(memory), batch.cut_boxes(), shapes_[0][0]);
  }
  for (int i = batch.has_bytes() ? 1 : 0; i < batch.num_outputs(); ++i) {
    const auto at = static_cast<size_t>(i);
    send(outputs_[at].At(memory), batch.output(i), shapes_[at].Count());
  }
}

void PrefetchingDataLayer::BatchUpload::Finish(const RunContext& run) {
  copies_->ComputeWaitsForCopies();
  if (normalization_ != nullptr) {
    NormalizePixels(run, *normalization_, pixels_.At(run.UploadMemory()),
                    crop_offsets_.At(run.UploadMemory()),
                    normalization_->mixed ? mix_weights_.At(run.UploadMemory()) : nullptr,
                    normalization_->cut ? cut_boxes_.At(run.UploadMemory()) : nullptr);
  }
  for (int i = normalization_ != nullptr ? 1 : 0; i < run.NumOutputs(); ++i) {
    run.device().Copy(BlockCopy(sizeof(float), 1, run.Output(i).Count(), 0, 0),
                      outputs_[static_cast<size_t>(i)].At(run.UploadMemory()), run.Output(i).data);
  }
  copies_->CopiesWaitForCompute();
}

PrefetchingDataLayer::PrefetchingDataLayer(std::unique_ptr<BatchQueue> queue)
    : queue_(std::move(queue)), after_(queue_->position()) {}
PrefetchingDataLayer::~PrefetchingDataLayer() = default;

void PrefetchingDataLayer::Setup(SetupContext& ctx) {
  ctx.RunsOnHost();
  for (int i = 0; i < ctx.NumOutputs(); ++i) ctx.Output(i, queue_->shape(i));
  const Normalization* const normalization = queue_->normalization();
  if (normalization != nullptr) ctx.Constants(normalization->mean);
}

void PrefetchingDataLayer::Prepare(PrepareContext& ctx) {
  if (!ctx.device().IsAsync() && queue_->normalization() == nullptr) return;
  upload_ = std::make_unique<BatchUpload>(ctx.device(), *queue_);
  ctx.UploadMemory(upload_->Bytes());
}

void PrefetchingDataLayer::Forward(const RunContext& run) {
  virtual_rank_ = run.virtual_rank();
  if (upload_ != nullptr)
    return queue_->virtual_ranks() > 1 ? UploadVirtualRank(run) : UploadNext(run);
  if (virtual_rank_ == 0 && !run.is_reevaluation()) {
    const uint64_t epoch = queue_->position().epoch;
    batch_ = &queue_->Next();
    bad_ += CountBadRecords(*batch_, epoch);
  }
  for (int i = 0; i < run.NumOutputs(); ++i) {
    const Tensor& out = run.Output(i);
    run.device().CopyToDevice(out.data, batch_->output(i).data() + virtual_rank_ * out.Count(),
                              out.Bytes());
  }
}

void PrefetchingDataLayer::RecordPosition() {
  std::rotate(std::begin(before_), std::end(before_) - 1, std::end(before_));
  before_[0] = after_;
  after_ = queue_->position();
}

void PrefetchingDataLayer::UploadVirtualRank(const RunContext& run) {
  if (virtual_rank_ == 0) {
    const uint64_t epoch = queue_->position().epoch;
    batch_ = &NextBatch();
    bad_ += CountBadRecords(*batch_, epoch);
    RecordPosition();
  }
  upload_->Start(*batch_, virtual_rank_, run.UploadMemory());
  upload_->Finish(run);
}

void PrefetchingDataLayer::UploadNext(const RunContext& run) {
  if (!uploaded_) {
    const uint64_t epoch = queue_->position().epoch;
    const Batch& batch = NextBatch();
    upload_->Start(batch, 0, run.UploadMemory());
    bad_uploaded_ = CountBadRecords(batch, epoch);
  }
  bad_ += bad_uploaded_;
  uploaded_ = false;
  RecordPosition();
  // If the reading threads are late, the next pass takes the batch: waiting here would delay this
  // pass. An error is thrown in the pass that it belongs to, too.
  const uint64_t epoch = queue_->position().epoch;
  const Batch* const next = queue_->IsReady() ? &NextBatch() : nullptr;
  upload_->Finish(run);
  if (next == nullptr) return;
  upload_->Start(*next, 0, run.UploadMemory());
  bad_uploaded_ = CountBadRecords(*next, epoch);
  uploaded_ = true;
}

// The queue reuses the memory of the former batch, so its copies must be done. Most were enqueued
// one pass ago.
const Batch& PrefetchingDataLayer::NextBatch() {
  upload_->WaitForCopies();
  return queue_->Next();
}

// The queue's position may be a batch ahead: it counts the batch that is being uploaded.
const Position& PrefetchingDataLayer::CurrentPosition() const {
  return upload_ == nullptr ? queue_->position() : after_;
}

void PrefetchingDataLayer::WaitForBatches(int passes) {
  if (uploaded_) --passes;  // the first pass has its batch on the device
  if (passes > 0) queue_->Await(passes);
}

std::string PrefetchingDataLayer::SaveState() const {
  Position position = CurrentPosition();
  position.bad = position.epoch == bad_epoch_ ? static_cast<uint64_t>(bad_in_epoch_) : 0;
  return position.Encode();
}

void PrefetchingDataLayer::RestoreState(const std::string& state) {
  queue_->Restore(Position::Decode(state));
  after_ = queue_->position();
  bad_epoch_ = after_.epoch;
  bad_in_epoch_ = static_cast<int64_t>(after_.bad);
}

bool PrefetchingDataLayer::SkipsBadRecords() const { return MaxBadRecords() >= 0; }

int64_t PrefetchingDataLayer::TakeBadRecords() { return std::exchange(bad_, 0); }

void PrefetchingDataLayer::AddBadRecords(int64_t of_all) {
  const uint64_t epoch = CurrentPosition().epoch;
  if (epoch != bad_epoch_) bad_in_epoch_ = 0;
  bad_epoch_ = epoch;
  bad_in_epoch_ += of_all;
  const int most = MaxBadRecords();
  if (bad_in_epoch_ <= most) return;
  throw Error(
      ErrorCode::kData, {queue_->path()},
      Join(bad_in_epoch_, " bad records in one epoch, and --bad_records=skip=", most, " allows ",
           most, "; the warnings above name them: repair or remove them, or allow more"));
}

std::string PrefetchingDataLayer::RecordName(int64_t index, uint32_t batches_ago) {
  if (batches_ago > kMaxBatchesAgo) return "";
  index += virtual_rank_ * queue_->shape()[0];
  if (upload_ == nullptr) return queue_->RecordName(index);
  return queue_->RecordName(before_[batches_ago], index);
}

void PrefetchedImages::Setup(SetupContext& ctx) {
  PrefetchingDataLayer::Setup(ctx);
  if (ctx.NumOutputs() > 1) ctx.OutputKeepsF32(1);
  if (logged_) return;
  const Shape& shape = queue().shape();
  LOG(INFO) << "output data size: " << shape[0] << "," << shape[1] << "," << shape[2] << ","
            << shape[3];
  logged_ = true;
}

}  // namespace trainer

#include "data/prefetching_data_layer.h"

#include <glog/logging.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/input/bad_records.h"

namespace trainer {
namespace {

// The bad records of a batch; of one in which an epoch ends, those of the next epoch.
int64_t BadOf(const Batch& batch, uint64_t epoch_before) {
  return batch.next.epoch == epoch_before ? batch.bad : static_cast<int64_t>(batch.next.bad);
}

}  // namespace

PrefetchingDataLayer::PrefetchingDataLayer(std::unique_ptr<BatchQueue> prefetcher)
    : prefetcher_(std::move(prefetcher)), after_(prefetcher_->position()) {}

void PrefetchingDataLayer::Setup(SetupContext& ctx) {
  ctx.RunsOnHost();
  for (int i = 0; i < ctx.NumOutputs(); ++i) ctx.Output(i, prefetcher_->shape(i));
  const Normalization* const numbers = prefetcher_->normalization();
  if (numbers != nullptr) ctx.Constants(numbers->mean);
}

void PrefetchingDataLayer::Prepare(PrepareContext& ctx) {
  if (!ctx.device().IsAsync() && prefetcher_->normalization() == nullptr) return;
  stage_ = std::make_unique<BatchUpload>(ctx.device(), *prefetcher_);
  ctx.UploadMemory(stage_->Bytes());
}

void PrefetchingDataLayer::Forward(const RunContext& run) {
  part_ = run.virtual_rank();
  if (stage_ != nullptr) return prefetcher_->virtual_ranks() > 1 ? StagePart(run) : StageAhead(run);
  if (part_ == 0 && !run.is_reevaluation()) {
    const uint64_t epoch = prefetcher_->position().epoch;
    batch_ = &prefetcher_->Next();
    bad_ += BadOf(*batch_, epoch);
  }
  for (int i = 0; i < run.NumOutputs(); ++i) {
    const Tensor& out = run.Output(i);
    run.device().CopyToDevice(out.data, batch_->output(i).data() + part_ * out.Count(),
                              out.Bytes());
  }
}

void PrefetchingDataLayer::NotePositions() {
  std::rotate(std::begin(before_), std::end(before_) - 1, std::end(before_));
  before_[0] = after_;
  after_ = prefetcher_->position();
}

void PrefetchingDataLayer::StagePart(const RunContext& run) {
  if (part_ == 0) {
    const uint64_t epoch = prefetcher_->position().epoch;
    batch_ = &TakeNext();
    bad_ += BadOf(*batch_, epoch);
    NotePositions();
  }
  stage_->Send(*batch_, part_, run.UploadMemory());
  stage_->Unpack(run);
}

void PrefetchingDataLayer::StageAhead(const RunContext& run) {
  if (!sent_) {
    const uint64_t epoch = prefetcher_->position().epoch;
    const Batch& batch = TakeNext();
    stage_->Send(batch, 0, run.UploadMemory());
    bad_sent_ = BadOf(batch, epoch);
  }
  bad_ += bad_sent_;
  sent_ = false;
  NotePositions();
  // Where the threads are late, the next pass takes it: waiting here would keep this one from being
  // computed. An error, too, waits for the pass that it belongs to.
  const uint64_t epoch = prefetcher_->position().epoch;
  const Batch* const next = prefetcher_->IsReady() ? &TakeNext() : nullptr;
  stage_->Unpack(run);
  if (next == nullptr) return;
  stage_->Send(*next, 0, run.UploadMemory());
  bad_sent_ = BadOf(*next, epoch);
  sent_ = true;
}

// The next batch; the former one is taken back, so that its copies must be done. They were queued
// in the pass before, mostly.
const Batch& PrefetchingDataLayer::TakeNext() {
  stage_->WaitForCopies();
  return prefetcher_->Next();
}

// After the last batch that a pass used.
const Position& PrefetchingDataLayer::Here() const {
  return stage_ == nullptr ? prefetcher_->position() : after_;
}

// One that was sent ahead is the first of them.
void PrefetchingDataLayer::AwaitBatches(int passes) {
  if (sent_) --passes;
  if (passes > 0) prefetcher_->Await(passes);
}

std::string PrefetchingDataLayer::SaveState() const {
  Position position = Here();
  position.bad = position.epoch == bad_epoch_ ? static_cast<uint64_t>(bad_in_epoch_) : 0;
  return position.Encode();
}

void PrefetchingDataLayer::RestoreState(const std::string& state) {
  prefetcher_->Restore(Position::Decode(state));
  after_ = prefetcher_->position();
  bad_epoch_ = after_.epoch;
  bad_in_epoch_ = static_cast<int64_t>(after_.bad);
}

bool PrefetchingDataLayer::SkipsBadRecords() const { return MaxBadRecords() >= 0; }

int64_t PrefetchingDataLayer::TakeBadRecords() { return std::exchange(bad_, 0); }

// What comes with the first batch of an epoch counts from its first record on.
void PrefetchingDataLayer::AddBadRecords(int64_t of_all) {
  const uint64_t epoch = Here().epoch;
  if (epoch != bad_epoch_) bad_in_epoch_ = 0;
  bad_epoch_ = epoch;
  bad_in_epoch_ += of_all;
  const int most = MaxBadRecords();
  if (bad_in_epoch_ <= most) return;
  throw Error(
      ErrorCode::kData, {prefetcher_->path()},
      Join(bad_in_epoch_, " bad records in one epoch, and --bad_records=skip=", most, " allows ",
           most, "; the warnings above name them: repair or remove them, or allow more"));
}

std::string PrefetchingDataLayer::NameOfItem(int64_t item, uint32_t batches_ago) {
  if (batches_ago > kAgo) return "";
  item += part_ * prefetcher_->shape()[0];
  if (stage_ == nullptr) return prefetcher_->NameOfItem(item);
  return prefetcher_->NameOfItem(before_[batches_ago], item);
}

void PrefetchedImages::Setup(SetupContext& ctx) {
  PrefetchingDataLayer::Setup(ctx);
  if (ctx.NumOutputs() > 1) ctx.OutputKeepsF32(1);
  if (logged_) return;
  const Shape& shape = prefetcher().shape();
  LOG(INFO) << "output data size: " << shape[0] << "," << shape[1] << "," << shape[2] << ","
            << shape[3];
  logged_ = true;
}

}  // namespace trainer

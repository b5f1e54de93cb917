#include "prefetched.h"

#include <glog/logging.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace trainer {

Prefetched::Prefetched(std::unique_ptr<Prefetcher> prefetcher)
    : prefetcher_(std::move(prefetcher)), after_(prefetcher_->position()) {}

void Prefetched::Describe(DescribeContext& plan) {
  for (int i = 0; i < plan.NumOut(); ++i) plan.Out(i, prefetcher_->shape(i));
  const PixelNumbers* const numbers = prefetcher_->pixel_numbers();
  if (numbers != nullptr) plan.Constants(numbers->mean);
}

void Prefetched::Prepare(PrepareContext& plan) {
  if (!plan.device().RunsLater() && prefetcher_->pixel_numbers() == nullptr) return;
  stage_ = std::make_unique<BatchStage>(plan.device(), *prefetcher_);
  plan.Staging(stage_->Bytes());
}

void Prefetched::Forward(const RunContext& run) {
  part_ = run.part();
  if (stage_ != nullptr) return prefetcher_->parts() > 1 ? StagePart(run) : StageAhead(run);
  if (part_ == 0) batch_ = &prefetcher_->Next();
  for (int i = 0; i < run.NumOut(); ++i) {
    const Tensor& out = run.Out(i);
    run.device().CopyToDevice(out.data, batch_->output(i).data() + part_ * out.Count(),
                              out.Bytes());
  }
}

void Prefetched::NotePositions() {
  std::rotate(std::begin(before_), std::end(before_) - 1, std::end(before_));
  before_[0] = after_;
  after_ = prefetcher_->position();
}

void Prefetched::StagePart(const RunContext& run) {
  if (part_ == 0) {
    batch_ = &TakeNext();
    NotePositions();
  }
  stage_->Send(*batch_, part_, run.Staging());
  stage_->Unpack(run);
}

void Prefetched::StageAhead(const RunContext& run) {
  if (!sent_) stage_->Send(TakeNext(), 0, run.Staging());
  sent_ = false;
  NotePositions();
  // Where the threads are late, the next pass takes it: waiting here would keep this one from being
  // computed. An error, too, waits for the pass that it belongs to.
  const Batch* const next = prefetcher_->IsReady() ? &TakeNext() : nullptr;
  stage_->Unpack(run);
  if (next == nullptr) return;
  stage_->Send(*next, 0, run.Staging());
  sent_ = true;
}

// The next batch; the former one is taken back, so that its copies must be done. They were queued
// in the pass before, mostly.
const Batch& Prefetched::TakeNext() {
  stage_->WaitForCopies();
  return prefetcher_->Next();
}

std::string Prefetched::SaveState() const {
  return (stage_ == nullptr ? prefetcher_->position() : after_).Encode();
}

void Prefetched::RestoreState(const std::string& state) {
  prefetcher_->Restore(Position::Decode(state));
  after_ = prefetcher_->position();
}

std::string Prefetched::NameOfItem(int64_t item, uint32_t batches_ago) {
  if (batches_ago > kAgo) return "";
  item += part_ * prefetcher_->shape()[0];
  if (stage_ == nullptr) return prefetcher_->NameOfItem(item);
  return prefetcher_->NameOfItem(before_[batches_ago], item);
}

void PrefetchedImages::Describe(DescribeContext& plan) {
  Prefetched::Describe(plan);
  if (plan.NumOut() > 1) plan.OutStaysF32(1);
  if (logged_) return;
  const Shape& shape = prefetcher().shape();
  LOG(INFO) << "output data size: " << shape[0] << "," << shape[1] << "," << shape[2] << ","
            << shape[3];
  logged_ = true;
}

}  // namespace trainer

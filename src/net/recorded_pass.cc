// Forward and backward as one call of a device that records.

#include <glog/logging.h>

#include <utility>

#include "run_state.h"
#include "trainer/backend/recording.h"
#include "trainer/base/text/text.h"
#include "trainer/layers/works_on_host.h"

namespace trainer {

// Passes are alike where all shapes hold. What layers do on the host comes first, and after the
// last of those layers nothing differs from pass to pass but numbers in the device's memory.
void Net::PrepareToRecord() {
  records_ = options_.record && runs_ahead_ && !options_.keeps_batch && RecorderOf(device_);
  if (!records_) return;
  for (int i = 0; i < NumLayers(); ++i) {
    if (dynamic_cast<WorksOnHost*>(&GetLayer(i)) != nullptr) first_recorded_ = i + 1;
  }
}

bool Net::Records() const { return records_ && !debug_; }

void Net::DoNotRecord(const std::string& why) {
  if (records_)
    LOG(INFO) << "Passes of net '" << name_ << "' are not recorded as a CUDA graph: " << why;
  records_ = false;
}

void Net::StartPass(GradientSink* sink, const std::function<void()>* then) {
  PassRecording& kept = sink != nullptr   ? summed_recording_
                        : then != nullptr ? step_recording_
                                          : pass_recording_;
  auto* const sums = dynamic_cast<SumsRecordedPasses*>(sink);
  const bool can = Records() && (sink == nullptr || sums != nullptr);
  // The first one is not recorded: in it libraries take what they need and kernels are loaded, and
  // a group learns its buckets.
  if (!can || !std::exchange(kept.had, true)) {
    StartForward();
    Backward(sink);
    if (then != nullptr) (*then)();
    return;
  }
  BeginPass();
  for (int i = 0; i < first_recorded_; ++i) ForwardLayer(i);
  if (kept.recording == nullptr) kept.recording = Record(sink, then);
  const bool plays = kept.recording != nullptr;
  plays ? kept.recording->Play() : RunAlike(sink, then, nullptr);
  program_->exchange().Send(true, plays && sums != nullptr);
  if (plays && sums != nullptr) sums->OnPlayed();
}

// What is the same in each pass. Where gradients are summed, losses are as well: they are there
// for the host behind forward, and `losses`, where it is not null, marks that.
void Net::RunAlike(GradientSink* sink, const std::function<void()>* then, RecordedMark* losses) {
  PassExchange& exchange = program_->exchange();
  for (int i = first_recorded_; i < NumLayers(); ++i) ForwardLayer(i);
  exchange.Gather(state_->losses());
  if (sink != nullptr) exchange.LayOut(false);
  if (losses != nullptr) losses->Set();
  Backward(sink);
  if (then != nullptr) (*then)();
  sink != nullptr ? exchange.CountUp() : exchange.LayOut(true);
}

// A net that cannot be recorded, whatever the reason, trains without that: null.
std::unique_ptr<Recording> Net::Record(GradientSink* sink, const std::function<void()>* then) {
  const Recorder& recorder = *RecorderOf(device_);
  auto* const sums = dynamic_cast<SumsRecordedPasses*>(sink);
  std::unique_ptr<Recording> recording;
  try {
    RecordedMark* const losses =
        sums == nullptr ? nullptr : program_->exchange().MarkOfLosses(recorder);
    if (sums != nullptr) sums->BeginRecording();
    recording = recorder.Record([&] {
      RunAlike(sink, then, losses);
      if (sums != nullptr) sums->EndRecording();
    });
  } catch (const Error& error) {
    if (sums != nullptr) sums->DropRecording();
    LOG(WARNING) << "Passes of net '" << name_
                 << "' are not recorded as a CUDA graph: " << error.what();
    records_ = false;
    return nullptr;
  }
  int first = first_recorded_;
  while (first < NumLayers() && LayerAt(first).type() == "Split") ++first;  // which no user wrote
  const std::string from =
      first < NumLayers() ? Join("layer '", LayerAt(first).name(), "'") : "backward";
  LOG(INFO) << "Recorded a " << (then == nullptr ? "pass" : "step") << " of net '" << name_
            << "' from " << from << " on as a CUDA graph: " << recording->NumOperations()
            << " kernels, copies"
            << (sums == nullptr ? " and fills" : ", fills and markers for the sums of gradients")
            << " start with one call";
  return recording;
}

}  // namespace trainer

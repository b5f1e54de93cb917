// Forward and backward as one call of a device that records.

#include <glog/logging.h>

#include <utility>

#include "run_state.h"
#include "trainer/backend/recording.h"
#include "trainer/base/text.h"
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

void Net::StartPass() {
  // The first pass is not recorded: in it libraries take what they need and kernels are loaded.
  const bool plainly = !Records() || !std::exchange(had_pass_, true);
  if (plainly) {
    StartForward();
    return Backward();
  }
  BeginPass();
  for (int i = 0; i < first_recorded_; ++i) ForwardLayer(i);
  if (recording_ == nullptr) Record();
  recording_ != nullptr ? recording_->Play() : RunAlike();
  program_->exchange().Send();
}

// What is the same in each pass.
void Net::RunAlike() {
  for (int i = first_recorded_; i < NumLayers(); ++i) ForwardLayer(i);
  program_->exchange().Gather(state_->losses());
  Backward();
}

// A net that cannot be recorded, whatever the reason, trains without that.
void Net::Record() {
  try {
    recording_ = RecorderOf(device_)->Record([this] { RunAlike(); });
  } catch (const Error& error) {
    LOG(WARNING) << "Passes of net '" << name_ << "' are not recorded: " << error.what();
    records_ = false;
    return;
  }
  int first = first_recorded_;
  while (first < NumLayers() && LayerAt(first).type() == "Split") ++first;  // which no user wrote
  const std::string from =
      first < NumLayers() ? Join("layer '", LayerAt(first).name(), "'") : "backward";
  LOG(INFO) << "Recorded a pass of net '" << name_ << "' from " << from
            << " on: " << recording_->NumOperations()
            << " kernels, copies and fills are started as one";
}

}  // namespace trainer

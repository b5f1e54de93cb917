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

void Net::StartPass(const std::function<void()>* then) {
  // The first one is not recorded: in it libraries take what they need and kernels are loaded.
  bool& had = then == nullptr ? had_pass_ : had_step_;
  const bool plainly = !Records() || !std::exchange(had, true);
  if (plainly) {
    StartForward();
    Backward();
    if (then != nullptr) (*then)();
    return;
  }
  BeginPass();
  for (int i = 0; i < first_recorded_; ++i) ForwardLayer(i);
  std::unique_ptr<Recording>& recording = then == nullptr ? pass_recording_ : step_recording_;
  if (recording == nullptr) recording = Record(then);
  recording != nullptr ? recording->Play() : RunAlike(then);
  program_->exchange().Send(true);
}

// What is the same in each pass.
void Net::RunAlike(const std::function<void()>* then) {
  for (int i = first_recorded_; i < NumLayers(); ++i) ForwardLayer(i);
  program_->exchange().Gather(state_->losses());
  Backward();
  if (then != nullptr) (*then)();
  program_->exchange().LayOut(true);
}

// A net that cannot be recorded, whatever the reason, trains without that: null.
std::unique_ptr<Recording> Net::Record(const std::function<void()>* then) {
  std::unique_ptr<Recording> recording;
  try {
    recording = RecorderOf(device_)->Record([&] { RunAlike(then); });
  } catch (const Error& error) {
    LOG(WARNING) << "Passes of net '" << name_ << "' are not recorded: " << error.what();
    records_ = false;
    return nullptr;
  }
  int first = first_recorded_;
  while (first < NumLayers() && LayerAt(first).type() == "Split") ++first;  // which no user wrote
  const std::string from =
      first < NumLayers() ? Join("layer '", LayerAt(first).name(), "'") : "backward";
  LOG(INFO) << "Recorded a " << (then == nullptr ? "pass" : "step") << " of net '" << name_
            << "' from " << from << " on: " << recording->NumOperations()
            << " kernels, copies and fills are started as one";
  return recording;
}

}  // namespace trainer

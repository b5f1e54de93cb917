#pragma once
// Additional streams of a device, and events that order them.

#include "cuda/bindings/errors.h"
#include "cuda/cuda_device.h"

namespace trainer::cuda {

// An event without timing, on the current GPU of the calling thread.
class StreamEvent {
 public:
  StreamEvent() {
    Check(GetRuntime()->EventCreateWithFlags(&event_, kEventDisableTiming),
          "making an event (cudaEventCreate)");
  }
  ~StreamEvent() { GetRuntime()->EventDestroy(event_); }
  StreamEvent(const StreamEvent&) = delete;
  StreamEvent& operator=(const StreamEvent&) = delete;

  // Records the event after the work queued on `stream` so far.
  void Record(Stream stream) {
    Check(GetRuntime()->EventRecord(event_, stream), "marking a queue (cudaEventRecord)");
  }
  // Records the event while `stream` is captured: each launch of the graph sets it at this point.
  void RecordExternal(Stream stream) {
    Check(GetRuntime()->EventRecordWithFlags(event_, stream, kEventRecordExternal),
          "marking a queue that is recorded (cudaEventRecordWithFlags)");
  }
  // Makes work queued on `stream` from now on wait for the event.
  void MakeWait(Stream stream) {
    Check(GetRuntime()->StreamWaitEvent(stream, event_, 0),
          "making a queue wait (cudaStreamWaitEvent)");
  }
  // Returns when the event is reached, with a cudaError_t. Does not throw.
  int Wait() { return GetRuntime()->EventSynchronize(event_); }
  // Returns whether the stream has reached the event. Throws the error of the stream if it has
  // failed.
  bool IsReached() const {
    const int status = GetRuntime()->EventQuery(event_);
    if (status == kSuccess) return true;
    if (status != kErrorNotReady) Check(status, "asking for its progress (cudaEventQuery)");
    // clears it; else the check after the next launch would report it
    GetRuntime()->GetLastError();
    return false;
  }

 private:
  Event event_ = nullptr;
};

// A stream on the current GPU of the calling thread. The destructor waits for its work.
class OwnedStream {
 public:
  // `what` completes the message of an error: see errors.h.
  explicit OwnedStream(const char* what) {
    Check(GetRuntime()->StreamCreateWithFlags(&stream_, kStreamNonBlocking), what);
  }
  ~OwnedStream() {
    GetRuntime()->StreamSynchronize(stream_);
    GetRuntime()->StreamDestroy(stream_);
  }
  OwnedStream(const OwnedStream&) = delete;
  OwnedStream& operator=(const OwnedStream&) = delete;

  Stream get() const { return stream_; }

 private:
  Stream stream_ = nullptr;
};

}  // namespace trainer::cuda

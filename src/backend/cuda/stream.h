#pragma once
// Queues beside that of a device, and events that put them in order.

#include "cuda/bindings/errors.h"
#include "cuda/cuda_device.h"

namespace trainer::cuda {

// An event, for order alone. Of the GPU that the calling thread uses.
class StreamEvent {
 public:
  StreamEvent() {
    Check(GetRuntime()->EventCreateWithFlags(&event_, kEventDisableTiming),
          "making an event (cudaEventCreate)");
  }
  ~StreamEvent() { GetRuntime()->EventDestroy(event_); }
  StreamEvent(const StreamEvent&) = delete;
  StreamEvent& operator=(const StreamEvent&) = delete;

  // Behind what `stream` was given so far.
  void Record(Stream stream) {
    Check(GetRuntime()->EventRecord(event_, stream), "marking a queue (cudaEventRecord)");
  }
  // While `stream` is captured: the graph sets it each time that it comes so far.
  void RecordExternal(Stream stream) {
    Check(GetRuntime()->EventRecordWithFlags(event_, stream, kEventRecordExternal),
          "marking a queue that is recorded (cudaEventRecordWithFlags)");
  }
  void MakeWait(Stream stream) {
    Check(GetRuntime()->StreamWaitEvent(stream, event_, 0),
          "making a queue wait (cudaStreamWaitEvent)");
  }
  int Wait() { return GetRuntime()->EventSynchronize(event_); }
  // Whether the queue has come so far.
  bool IsReached() const {
    const int status = GetRuntime()->EventQuery(event_);
    if (status == kSuccess) return true;
    if (status != kErrorNotReady) Check(status, "asking for its progress (cudaEventQuery)");
    GetRuntime()->GetLastError();  // which has it, too, and is asked after the next kernel
    return false;
  }

 private:
  Event event_ = nullptr;
};

// A queue of its own, which ends when its work is done. Of the GPU that the calling thread uses.
class OwnedStream {
 public:
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

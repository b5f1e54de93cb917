// Streams and events.

#include "support/emulated_gpu/calls.h"
#include "support/emulated_gpu/stream.h"
#include "trainer/base/text/text.h"

namespace emulated_gpu::calls {
namespace {

using trainer::Join;
namespace cuda = trainer::cuda;

// Refuses a call that waits for a captured stream or queries it.
int RefuseCaptured(Stream stream, const char* call) {
  if (stream->capture == nullptr) return RefuseInCapture(call);
  stream->capture->invalid = true;
  return Fail(kCaptureUnsupported, Join(call, " of a stream that is captured"));
}

int RefuseCaptured(Event event, const char* call) {
  if (event->capture == nullptr) return RefuseInCapture(call);
  event->capture->invalid = true;
  return Fail(kCapturedEvent, Join(call, " of an event that was recorded in a capture"));
}

// Refuses a call with the flag for external events if the stream is not captured.
int RefuseOutsideCapture(Stream stream, const char* call) {
  if (stream->capture != nullptr) return 0;
  return Fail(kInvalidValue, Join(call, " of an external event, on a stream that is not captured"));
}

int ErrorAfterWaiting() { return Broken() != 0 ? Fail(Broken()) : 0; }

void Append(std::vector<size_t>& to, const std::vector<size_t>& nodes) {
  to.insert(to.end(), nodes.begin(), nodes.end());
}

// Makes the stream join the capture that the event was recorded in.
int WaitInCapture(Stream stream, Event event) {
  if (event->capture == nullptr) {
    if (event->moment == nullptr) return 0;
    stream->capture->invalid = true;
    return Fail(kCaptureIsolation,
                "cudaStreamWaitEvent: a captured stream would wait for work that is not captured");
  }
  if (stream->capture == nullptr) {
    stream->capture = event->capture;
    stream->frontier.clear();
  } else if (stream->capture != event->capture) {
    stream->capture->invalid = event->capture->invalid = true;
    return Fail(kCaptureMerge, "cudaStreamWaitEvent: between two captures");
  }
  Append(stream->frontier, event->nodes);
  return stream->capture->invalid ? Fail(kCaptureInvalidated) : 0;
}

bool HasEnded(const Capture& capture) {
  for (const auto& it : Captures()) {
    if (it.get() == &capture) return false;
  }
  return true;
}

}  // namespace

int StreamCreateWithFlags(Stream* stream, unsigned flags) {
  const Call call(CallKind::kCreate);
  *stream = nullptr;
  if (call.error() != 0) return call.error();
  if (flags != cuda::kStreamNonBlocking) {
    return Fail(kInvalidValue, Join("cudaStreamCreateWithFlags: flags ", flags,
                                    ", of a stream that waits for the null stream"));
  }
  if (TheOptions().devices.empty()) return Fail(cuda::kErrorNoDevice);
  ++TheCounters().streams;
  *stream = CreateStream(CurrentDevice());
  return 0;
}

int StreamDestroy(Stream stream) {
  const Call call(CallKind::kOther);
  if (call.Refused()) return call.error();
  if (const int error = CheckStream(stream, "cudaStreamDestroy")) return error;
  if (stream->capture != nullptr) return RefuseCaptured(stream, "cudaStreamDestroy");
  DestroyStream(stream);
  return ErrorAfterWaiting();
}

int StreamSynchronize(Stream stream) {
  const Call call(CallKind::kSynchronize);
  if (call.error() != 0) return call.error();
  if (const int error = CheckStream(stream, "cudaStreamSynchronize")) return error;
  if (const int refused = RefuseCaptured(stream, "cudaStreamSynchronize")) return refused;
  ++TheCounters().synchronizations;
  FinishStream(stream);
  return ErrorAfterWaiting();
}

int StreamQuery(Stream stream) {
  const Call call(CallKind::kOther);
  if (call.error() != 0) return call.error();
  if (const int error = CheckStream(stream, "cudaStreamQuery")) return error;
  if (const int refused = RefuseCaptured(stream, "cudaStreamQuery")) return refused;
  MakeProgress();
  return IsIdle(stream) ? ErrorAfterWaiting() : Fail(cuda::kErrorNotReady);
}

int StreamWaitEvent(Stream stream, Event event, unsigned flags) {
  const Call call(CallKind::kOther);
  if (call.error() != 0) return call.error();
  if (const int error = CheckStream(stream, "cudaStreamWaitEvent")) return error;
  if (const int error = CheckEvent(event, "cudaStreamWaitEvent")) return error;
  if (flags > cuda::kEventWaitExternal) {
    return Fail(kInvalidValue, Join("cudaStreamWaitEvent: flags ", flags));
  }
  ++TheCounters().event_waits;
  if (flags == cuda::kEventWaitExternal) {
    if (const int error = RefuseOutsideCapture(stream, "cudaStreamWaitEvent")) return error;
    return QueueNode(stream, {.work = {}, .after = {}, .awaits = event});
  }
  if (event->capture != nullptr && HasEnded(*event->capture)) {
    return Fail(kCapturedEvent, "cudaStreamWaitEvent: the event's capture has ended");
  }
  if (stream->capture != nullptr || event->capture != nullptr) return WaitInCapture(stream, event);
  if (event->moment == nullptr || event->moment->reached) return 0;
  return Queue(stream, {.after = event->moment});
}

int EventCreateWithFlags(Event* event, unsigned flags) {
  const Call call(CallKind::kCreate);
  *event = nullptr;
  if (call.error() != 0) return call.error();
  if (flags != 0 && flags != cuda::kEventDisableTiming) {
    return Fail(kInvalidValue, Join("cudaEventCreateWithFlags: flags ", flags));
  }
  if (TheOptions().devices.empty()) return Fail(cuda::kErrorNoDevice);
  ++TheCounters().events;
  *event = CreateEvent(CurrentDevice(), flags == 0);
  return 0;
}

int EventDestroy(Event event) {
  const Call call(CallKind::kOther);
  if (call.Refused()) return call.error();
  if (const int error = CheckEvent(event, "cudaEventDestroy")) return error;
  DestroyEvent(event);
  return ErrorAfterWaiting();
}

int EventRecord(Event event, Stream stream) { return EventRecordWithFlags(event, stream, 0); }

int EventRecordWithFlags(Event event, Stream stream, unsigned flags) {
  const Call call(CallKind::kOther);
  if (call.error() != 0) return call.error();
  if (const int error = CheckStream(stream, "cudaEventRecord")) return error;
  if (const int error = CheckEvent(event, "cudaEventRecord")) return error;
  if (event->device != stream->device) {
    return Fail(kInvalidResourceHandle, "cudaEventRecord: the event is another device's");
  }
  if (flags > cuda::kEventRecordExternal) {
    return Fail(kInvalidValue, Join("cudaEventRecordWithFlags: flags ", flags));
  }
  ++TheCounters().event_records;
  if (flags == cuda::kEventRecordExternal) {
    if (const int error = RefuseOutsideCapture(stream, "cudaEventRecordWithFlags")) return error;
    return QueueNode(stream, {.work = {}, .after = {}, .records = event});
  }
  event->capture = stream->capture;
  event->nodes = stream->frontier;
  event->moment = nullptr;
  if (stream->capture != nullptr) {
    return stream->capture->invalid ? Fail(kCaptureInvalidated) : 0;
  }
  event->moment = std::make_shared<Moment>();
  return Queue(stream, {.reached = event->moment});
}

int EventSynchronize(Event event) {
  const Call call(CallKind::kSynchronize);
  if (call.error() != 0) return call.error();
  if (const int error = CheckEvent(event, "cudaEventSynchronize")) return error;
  if (const int refused = RefuseCaptured(event, "cudaEventSynchronize")) return refused;
  if (event->moment == nullptr) return 0;
  ++TheCounters().synchronizations;
  FinishMoment(*event->moment);
  return ErrorAfterWaiting();
}

int EventQuery(Event event) {
  const Call call(CallKind::kOther);
  if (call.error() != 0) return call.error();
  if (const int error = CheckEvent(event, "cudaEventQuery")) return error;
  if (const int refused = RefuseCaptured(event, "cudaEventQuery")) return refused;
  if (event->moment == nullptr) return 0;
  MakeProgress();
  return event->moment->reached ? ErrorAfterWaiting() : Fail(cuda::kErrorNotReady);
}

int EventElapsedTime(float* milliseconds, Event start, Event end) {
  const Call call(CallKind::kOther);
  if (call.error() != 0) return call.error();
  for (const Event event : {start, end}) {
    if (const int error = CheckEvent(event, "cudaEventElapsedTime")) return error;
    if (event->capture != nullptr) return RefuseCaptured(event, "cudaEventElapsedTime");
    if (!event->timing || event->moment == nullptr) {
      return Fail(kInvalidResourceHandle,
                  "cudaEventElapsedTime of an event without time, or never recorded");
    }
    if (!event->moment->reached) return Fail(cuda::kErrorNotReady);
  }
  *milliseconds = static_cast<float>(end->moment->milliseconds - start->moment->milliseconds);
  return 0;
}

}  // namespace emulated_gpu::calls

#include "support/emulated_gpu/stream.h"

#include <algorithm>
#include <chrono>

#include "support/emulated_gpu/memory.h"
#include "trainer/base/text/text.h"

namespace emulated_gpu {
namespace {

using trainer::Join;

uint64_t most_blocks = kManyBlocks;

struct Streams {
  std::vector<std::unique_ptr<CUstream_st>> streams;  // with destroyed ones, until they are idle
  std::vector<std::unique_ptr<CUevent_st>> events;
  std::vector<std::shared_ptr<Capture>> captures;
  double milliseconds = 0;  // advances with each piece of work
};

Streams& Get() {
  static Streams* const streams = new Streams;
  return *streams;
}

bool IsBlocked(const CUstream_st& stream) {
  const Work& work = stream.queue.front();
  if (work.after != nullptr && !work.after->reached) return true;
  return Broken() == 0 && work.ready && !work.ready();  // a broken GPU does not wait
}

void RunFront(CUstream_st& stream) {
  const Work work = std::move(stream.queue.front());
  stream.queue.pop_front();
  if (Broken() == 0) Run(work);
  Get().milliseconds += 0.001;
  ++TheCounters().done;
  if (work.reached == nullptr) return;
  work.reached->reached = true;
  work.reached->milliseconds = Get().milliseconds;
}

// Waits a little before work that another process blocks is checked again.
void WaitForOthers() { std::this_thread::sleep_for(std::chrono::microseconds(50)); }

bool RunAny() {
  std::vector<CUstream_st*> ready;
  for (auto& stream : Get().streams) {
    if (!stream->queue.empty() && !IsBlocked(*stream)) ready.push_back(stream.get());
  }
  if (ready.empty()) return false;
  RunFront(*ready[TheRandom().Below(ready.size())]);
  return true;
}

// Runs the stream's first piece, or one that it waits for.
void RunNeeded(CUstream_st* stream) {
  while (IsBlocked(*stream)) {
    const Work& work = stream->queue.front();
    if (work.after != nullptr && !work.after->reached) {
      stream = work.after->stream;
    } else {
      WaitForOthers();
    }
  }
  RunFront(*stream);
}

void DropDestroyed() {
  std::erase_if(Get().streams,
                [](const auto& stream) { return stream->destroyed && stream->queue.empty(); });
}

// Half of all waits, at random, run only what they need; the others run anything.
template <class Done>
void RunUntil(CUstream_st* stream, const Done& done) {
  const bool lazy = TheRandom().Below(2) == 0;
  while (!done()) {
    if (lazy) {
      RunNeeded(stream);
    } else if (!RunAny()) {
      WaitForOthers();
    }
  }
  OpenDevices(0);
  DropDestroyed();
  NoticeBreakdown();
}

template <class T>
bool IsLive(const std::vector<std::unique_ptr<T>>& all, const void* handle) {
  return std::any_of(all.begin(), all.end(), [&](const auto& it) { return it.get() == handle; });
}

}  // namespace

CUstream_st* CreateStream(int device) {
  auto& streams = Get().streams;
  streams.push_back(std::make_unique<CUstream_st>());
  streams.back()->device = device;
  return streams.back().get();
}

CUevent_st* CreateEvent(int device, bool timing) {
  auto& events = Get().events;
  events.push_back(std::make_unique<CUevent_st>());
  events.back()->device = device;
  events.back()->timing = timing;
  return events.back().get();
}

void DestroyStream(CUstream_st* stream) {
  stream->destroyed = true;
  DropDestroyed();
}

void DestroyEvent(CUevent_st* event) {
  std::erase_if(Get().events, [&](const auto& it) { return it.get() == event; });
}

int CheckStream(const void* stream, const char* call) {
  if (stream == nullptr) {
    return Fail(kInvalidResourceHandle,
                Join(call, " on the null stream, which waits for all others"));
  }
  if (!IsLive(Get().streams, stream) || static_cast<const CUstream_st*>(stream)->destroyed) {
    return Fail(kInvalidResourceHandle, Join(call, ": there is no such stream"));
  }
  return 0;
}

int CheckEvent(const void* event, const char* call) {
  if (event != nullptr && IsEvent(event)) return 0;
  return Fail(kInvalidResourceHandle, Join(call, ": there is no such event"));
}

bool IsEvent(const void* event) { return IsLive(Get().events, event); }

int Queue(CUstream_st* stream, Work work) {
  if (stream->capture == nullptr) {
    if (work.reached != nullptr) work.reached->stream = stream;
    stream->queue.push_back(std::move(work));
    return 0;
  }
  return QueueNode(stream, {.work = std::move(work), .after = {}});
}

int QueueNode(CUstream_st* stream, GraphNode node) {
  Capture& capture = *stream->capture;
  if (capture.invalid) return Fail(kCaptureInvalidated);
  node.after = stream->frontier;
  capture.nodes.push_back(std::move(node));
  stream->frontier = {capture.nodes.size() - 1};
  return 0;
}

void Run(const Work& work) {
  TheCounters().read_bytes += work.read_bytes;
  TheCounters().written_bytes += work.written_bytes;
  const auto& run = work.blocks > most_blocks ? work.instead : work.run;
  if (!run) return;
  OpenDevices(work.devices);
  run();
}

void SetMostBlocks(uint64_t blocks) {
  const std::scoped_lock lock(Mutex());
  most_blocks = blocks;
}

void FinishStream(CUstream_st* stream) {
  RunUntil(stream, [&] { return stream->queue.empty(); });
}

void FinishMoment(const Moment& moment) {
  RunUntil(moment.stream, [&] { return moment.reached; });
}

void FinishDevice(int device) {
  for (;;) {
    CUstream_st* busy = nullptr;
    for (auto& stream : Get().streams) {
      const bool counts = device < 0 || stream->device == device;
      if (counts && !stream->queue.empty()) busy = stream.get();
    }
    if (busy == nullptr) break;
    RunUntil(busy, [&] { return busy->queue.empty(); });
  }
  NoticeBreakdown();
}

void MakeProgress() {
  if (TheRandom().Below(2) == 0) RunAny();
  OpenDevices(0);
}

bool IsIdle(const CUstream_st* stream) { return stream->queue.empty(); }

std::vector<std::shared_ptr<Capture>>& Captures() { return Get().captures; }

void EndCapture(const std::shared_ptr<Capture>& capture) {
  for (auto& stream : Get().streams) {
    if (stream->capture == capture) stream->capture = nullptr;
  }
  std::erase(Get().captures, capture);
}

bool InvalidateCaptures() {
  bool found = false;
  for (auto& capture : Get().captures) {
    if (capture->thread != std::this_thread::get_id() || capture->relaxed) continue;
    capture->invalid = found = true;
  }
  return found;
}

}  // namespace emulated_gpu

#pragma once
// Streams and events: what is queued, and what runs next.

#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "support/emulated_gpu/state.h"

struct CUevent_st;
struct CUgraph_st;
struct CUgraphExec_st;
struct CUstream_st;

namespace emulated_gpu {

// A point in a stream's work.
struct Moment {
  CUstream_st* stream = nullptr;
  bool reached = false;
  double milliseconds = 0;
};
using MomentPointer = std::shared_ptr<Moment>;

// A piece of what a stream does, in order: waits for a moment, and for another process; runs a
// function or a graph, reaches a moment. Any of them may be missing.
struct Work {
  MomentPointer after = nullptr;
  std::function<bool()> ready = nullptr;
  std::function<void()> run = nullptr;
  std::function<void()> instead = nullptr;    // where SetMostBlocks forbids to run it
  unsigned devices = 0;                       // whose memory it uses
  uint64_t blocks = 0;                        // of a kernel; kManyBlocks of a library's call
  int64_t read_bytes = 0, written_bytes = 0;  // operands in device memory, but for a kernel's
  MomentPointer reached = nullptr;
};

struct GraphNode {
  Work work;
  std::vector<size_t> after;      // nodes
  CUevent_st* records = nullptr;  // instead of work: an event that each launch records
  CUevent_st* awaits = nullptr;   // or one that each launch waits for, as it is then
};
using Nodes = std::vector<GraphNode>;

// A recording. Streams that wait for its events take part.
struct Capture {
  CUstream_st* origin;
  std::thread::id thread;
  bool relaxed;
  bool invalid = false;
  Nodes nodes;
};

}  // namespace emulated_gpu

struct CUstream_st {
  int device = 0;
  bool destroyed = false;
  std::deque<emulated_gpu::Work> queue;
  std::shared_ptr<emulated_gpu::Capture> capture;
  std::vector<size_t> frontier;  // the captured nodes that the next one comes after
};

struct CUevent_st {
  int device = 0;
  bool timing = true;
  emulated_gpu::MomentPointer moment;  // of the last record; null before
  std::shared_ptr<emulated_gpu::Capture> capture;
  std::vector<size_t> nodes;
};

namespace emulated_gpu {

CUstream_st* CreateStream(int device);
CUevent_st* CreateEvent(int device, bool timing);
// The work goes on; memory is kept until it is done.
void DestroyStream(CUstream_st* stream);
void DestroyEvent(CUevent_st* event);

// 0, or the error of a call that gets this handle, which is a problem then.
int CheckStream(const void* stream, const char* call);
int CheckEvent(const void* event, const char* call);
bool IsEvent(const void* event);

// Queues the work, or records it where the stream is captured: then 0, or the error of a capture
// that is invalid.
int Queue(CUstream_st* stream, Work work);
// Records a node in the stream's capture, as Queue does.
int QueueNode(CUstream_st* stream, GraphNode node);

// Counts the work's operands and does it, or what is done instead. The memory of its
// devices alone can be reached then.
void Run(const Work& work);

// Runs what any order allows until all of the stream's work is done, the moment is reached, or all
// of the device's work (-1: of all devices) is.
void FinishStream(CUstream_st* stream);
void FinishMoment(const Moment& moment);
void FinishDevice(int device);
// Runs one piece of any stream, perhaps.
void MakeProgress();
bool IsIdle(const CUstream_st* stream);

// Makes all captures of this thread invalid, those that are not relaxed: a call that would break
// them was made. Whether there were any.
bool InvalidateCaptures();
// The captures that run.
std::vector<std::shared_ptr<Capture>>& Captures();
// No stream takes part any more.
void EndCapture(const std::shared_ptr<Capture>& capture);

}  // namespace emulated_gpu

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

// A piece of a stream's work. In order: it waits for a moment and for another process, runs a
// function or a graph, and reaches a moment. Each of these may be missing.
struct Work {
  MomentPointer after = nullptr;
  std::function<bool()> ready = nullptr;
  std::function<void()> run = nullptr;
  std::function<void()> instead = nullptr;    // if SetMostBlocks forbids `run`
  unsigned devices = 0;                       // whose memory it uses
  uint64_t blocks = 0;                        // of a kernel; kManyBlocks for a library call
  int64_t read_bytes = 0, written_bytes = 0;  // operands in device memory, except a kernel's
  MomentPointer reached = nullptr;
};

struct GraphNode {
  Work work;
  std::vector<size_t> after;      // nodes
  CUevent_st* records = nullptr;  // instead of work: an event that each launch records
  CUevent_st* awaits = nullptr;   // or an event whose latest record each launch waits for
};
using Nodes = std::vector<GraphNode>;

// A stream capture. Streams that wait for its events join it.
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
  std::vector<size_t> frontier;  // the captured nodes that the next one depends on
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
// Its queued work still runs; the memory is kept until then.
void DestroyStream(CUstream_st* stream);
void DestroyEvent(CUevent_st* event);

// Returns 0, or adds a problem and returns the error of a call that gets this handle.
int CheckStream(const void* stream, const char* call);
int CheckEvent(const void* event, const char* call);
bool IsEvent(const void* event);

// Queues the work, or records it if the stream is captured. Returns 0, or the error of an invalid
// capture.
int Queue(CUstream_st* stream, Work work);
// Records a node in the stream's capture, as Queue does.
int QueueNode(CUstream_st* stream, GraphNode node);

// Counts the work's operands and runs `run` or `instead`. Only the memory of its devices is
// accessible then.
void Run(const Work& work);

// Runs work in any allowed order until all of the stream's work is done, the moment is reached, or
// all of the device's work (-1: of all devices) is done.
void FinishStream(CUstream_st* stream);
void FinishMoment(const Moment& moment);
void FinishDevice(int device);
// Runs one piece of any stream, or nothing, at random.
void MakeProgress();
bool IsIdle(const CUstream_st* stream);

// Invalidates the captures of this thread that are not relaxed, because of a call that would break
// them. Returns whether there were any.
bool InvalidateCaptures();
// Returns the captures in progress.
std::vector<std::shared_ptr<Capture>>& Captures();
// Removes all streams from the capture and ends it.
void EndCapture(const std::shared_ptr<Capture>& capture);

}  // namespace emulated_gpu

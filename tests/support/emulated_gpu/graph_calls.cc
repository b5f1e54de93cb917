// Stream capture, and the graphs that it creates.

#include <algorithm>
#include <memory>
#include <utility>

#include "support/emulated_gpu/calls.h"
#include "support/emulated_gpu/memory.h"
#include "support/emulated_gpu/stream.h"
#include "trainer/base/text/text.h"

struct CUgraph_st {
  emulated_gpu::Nodes nodes;
};

struct CUgraphExec_st {
  std::shared_ptr<const emulated_gpu::Nodes> nodes;
  emulated_gpu::MomentPointer last;  // the end of its last launch
};

namespace emulated_gpu {
namespace {

template <class T>
std::vector<std::unique_ptr<T>>& Live() {
  static auto* const live = new std::vector<std::unique_ptr<T>>;
  return *live;
}

template <class T>
int Check(T* handle, const char* call) {
  for (const auto& it : Live<T>()) {
    if (it.get() == handle) return 0;
  }
  return Fail(kInvalidValue, trainer::Join(call, ": there is no such graph"));
}

template <class T>
void Destroy(T* handle) {
  std::erase_if(Live<T>(), [&](const auto& it) { return it.get() == handle; });
}

// Returns a random order that the nodes allow.
std::vector<size_t> AnyOrder(const Nodes& nodes) {
  std::vector<size_t> order, waits(nodes.size()), ready;
  std::vector<std::vector<size_t>> before(nodes.size());
  for (size_t n = 0; n < nodes.size(); ++n) {
    waits[n] = nodes[n].after.size();
    for (const size_t a : nodes[n].after) before[a].push_back(n);
    if (waits[n] == 0) ready.push_back(n);
  }
  while (!ready.empty()) {
    std::swap(ready[TheRandom().Below(ready.size())], ready.back());
    order.push_back(ready.back());
    ready.pop_back();
    for (const size_t n : before[order.back()]) {
      if (--waits[n] == 0) ready.push_back(n);
    }
  }
  return order;
}

bool HasEvents(const Nodes& nodes) {
  return std::any_of(nodes.begin(), nodes.end(), [](const GraphNode& node) {
    return node.records != nullptr || node.awaits != nullptr;
  });
}

// Runs a graph that was launched in a capture, as one piece of work.
void RunNodes(const Nodes& nodes) {
  for (const size_t n : AnyOrder(nodes)) Run(nodes[n].work);
}

// Queues node by node, so that other streams can run between two of them. From now on the event of
// a node belongs to this launch; it is reached when the node is.
void QueueNodes(CUstream_st* stream, const std::shared_ptr<const Nodes>& nodes) {
  for (const size_t n : AnyOrder(*nodes)) {
    const GraphNode& node = (*nodes)[n];
    if (node.records != nullptr) {
      node.records->capture = nullptr;
      node.records->moment = std::make_shared<Moment>();
      Queue(stream, {.reached = node.records->moment});
    } else if (node.awaits != nullptr) {
      Queue(stream, {.after = node.awaits->moment});
    } else {
      Queue(stream, {.run = [nodes, n] { Run((*nodes)[n].work); }});
    }
  }
}

int CheckEvents(const Nodes& nodes) {
  for (const GraphNode& node : nodes) {
    for (const CUevent_st* event : {node.records, node.awaits}) {
      if (event == nullptr || IsEvent(event)) continue;
      return Fail(kInvalidValue, "cudaGraphLaunch: an event of the graph is there no more");
    }
  }
  return 0;
}

// Returns whether the origin's next work depends on every node.
bool AllJoined(const Capture& capture) {
  std::vector<bool> joined(capture.nodes.size());
  std::vector<size_t> left = capture.origin->frontier;
  while (!left.empty()) {
    const size_t n = left.back();
    left.pop_back();
    if (joined[n]) continue;
    joined[n] = true;
    left.insert(left.end(), capture.nodes[n].after.begin(), capture.nodes[n].after.end());
  }
  return std::all_of(joined.begin(), joined.end(), [](bool it) { return it; });
}

}  // namespace

namespace calls {

int StreamBeginCapture(Stream stream, int mode) {
  const Call call(CallKind::kCapture);
  if (call.error() != 0) return call.error();
  if (const int error = CheckStream(stream, "cudaStreamBeginCapture")) return error;
  if (mode < 0 || mode > 2) return Fail(kInvalidValue, "cudaStreamBeginCapture: no such mode");
  if (stream->capture != nullptr) {
    return Fail(kIllegalState, "cudaStreamBeginCapture of a stream that is captured");
  }
  ++TheCounters().captures;
  stream->capture = std::make_shared<Capture>();
  stream->capture->origin = stream;
  stream->capture->thread = std::this_thread::get_id();
  stream->capture->relaxed = mode == 2;
  stream->frontier.clear();
  Captures().push_back(stream->capture);
  return 0;
}

int StreamEndCapture(Stream stream, Graph* graph) {
  const Call call(CallKind::kCapture);
  *graph = nullptr;
  if (call.error() != 0) return call.error();
  if (const int error = CheckStream(stream, "cudaStreamEndCapture")) return error;
  const std::shared_ptr<Capture> capture = stream->capture;
  if (capture == nullptr) {
    return Fail(kIllegalState, "cudaStreamEndCapture of a stream that is not captured");
  }
  if (capture->origin != stream) {
    return Fail(kCaptureUnmatched, "cudaStreamEndCapture: the capture began on another stream");
  }
  if (capture->thread != std::this_thread::get_id() && !capture->relaxed) {
    return Fail(kCaptureWrongThread, "cudaStreamEndCapture: the capture is another thread's");
  }
  const bool joined = AllJoined(*capture);
  EndCapture(capture);
  if (capture->invalid) return Fail(kCaptureInvalidated);
  if (!joined) {
    return Fail(kCaptureUnjoined,
                "cudaStreamEndCapture: work of another stream that the first does not wait for");
  }
  Live<CUgraph_st>().push_back(std::make_unique<CUgraph_st>(CUgraph_st{capture->nodes}));
  *graph = Live<CUgraph_st>().back().get();
  return 0;
}

int GraphGetNodes(Graph graph, CUgraphNode_st** nodes, size_t* count) {
  const Call call(CallKind::kCapture);
  if (call.error() != 0) return call.error();
  if (const int error = Check(graph, "cudaGraphGetNodes")) return error;
  if (nodes != nullptr) return Fail(kInvalidValue, "cudaGraphGetNodes: only counts here");
  *count = graph->nodes.size();
  return 0;
}

int GraphInstantiate(GraphExec* exec, Graph graph) {
  const Call call(CallKind::kCapture);
  *exec = nullptr;
  if (call.error() != 0) return call.error();
  if (const int error = Check(graph, "cudaGraphInstantiate")) return error;
  auto nodes = std::make_shared<const Nodes>(graph->nodes);
  Live<CUgraphExec_st>().push_back(
      std::make_unique<CUgraphExec_st>(CUgraphExec_st{std::move(nodes), nullptr}));
  *exec = Live<CUgraphExec_st>().back().get();
  return 0;
}

int GraphLaunch(GraphExec exec, Stream stream) {
  const Call call(CallKind::kCapture);
  if (call.error() != 0) return call.error();
  if (const int error = CheckStream(stream, "cudaGraphLaunch")) return error;
  if (const int error = Check(exec, "cudaGraphLaunch")) return error;
  if (const int error = CheckEvents(*exec->nodes)) return error;
  ++TheCounters().graph_launches;
  if (stream->capture != nullptr) {
    if (HasEvents(*exec->nodes)) {
      return Fail(kInvalidValue, "cudaGraphLaunch in a capture, of a graph with external events");
    }
    return Queue(stream, {.run = [nodes = exec->nodes] { RunNodes(*nodes); }});
  }
  // Launches of one graph run one after the other.
  Queue(stream, {.after = std::exchange(exec->last, std::make_shared<Moment>())});
  QueueNodes(stream, exec->nodes);
  return Queue(stream, {.reached = exec->last});
}

int GraphExecDestroy(GraphExec exec) {
  const Call call(CallKind::kCapture);
  if (call.Refused()) return call.error();
  if (const int error = Check(exec, "cudaGraphExecDestroy")) return error;
  Destroy(exec);
  return call.error();
}

int GraphDestroy(Graph graph) {
  const Call call(CallKind::kCapture);
  if (call.Refused()) return call.error();
  if (const int error = Check(graph, "cudaGraphDestroy")) return error;
  Destroy(graph);
  return call.error();
}

}  // namespace calls
}  // namespace emulated_gpu

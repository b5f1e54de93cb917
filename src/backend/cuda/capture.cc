#include "cuda/capture.h"

#include "cuda/copy_stream.h"
#include "cuda/stream.h"

namespace trainer::cuda {
namespace {

// A CUDA graph that was captured and instantiated.
class GraphRecording final : public CapturedGraph {
 public:
  // Takes ownership of `exec`.
  GraphRecording(const CudaDevice& device, GraphExec exec, size_t operations)
      : device_(device), exec_(exec), operations_(static_cast<int>(operations)) {}
  ~GraphRecording() override { GetRuntime()->GraphExecDestroy(exec_); }

  // Queues the graph on the device's stream.
  void Launch() override {
    device_.Use();
    Check(GetRuntime()->GraphLaunch(exec_, device_.stream()),
          "starting a recorded pass on it (cudaGraphLaunch)");
  }
  int NumOperations() const override { return operations_; }

 private:
  const CudaDevice& device_;
  GraphExec exec_;
  int operations_;
};

// The capture of a stream; the destructor ends it if Finish did not.
class Capture {
 public:
  explicit Capture(Stream stream) : stream_(stream) {
    Check(GetRuntime()->StreamBeginCapture(stream_, kCaptureThreadLocal),
          "beginning to record (cudaStreamBeginCapture)");
  }
  ~Capture() {
    if (!ended_) End();
    if (graph_ != nullptr) GetRuntime()->GraphDestroy(graph_);
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  // Ends the capture and returns the graph, which this object owns. Throws what the capture has
  // found.
  Graph Finish() {
    Check(End(), "recording a pass (cudaStreamEndCapture)");
    return graph_;
  }

 private:
  // Ends the capture and returns its status.
  int End() {
    ended_ = true;
    const int status = GetRuntime()->StreamEndCapture(stream_, &graph_);
    // clears the error, which the next launch would report
    if (status != kSuccess) GetRuntime()->GetLastError();
    return status;
  }

  Stream stream_;
  Graph graph_ = nullptr;
  bool ended_ = false;
};

// An event in a captured stream, with a stream of its own for readbacks.
class GraphMark final : public CapturedEvent {
 public:
  explicit GraphMark(const CudaDevice& device) : device_(device) {}

  void Record() override {
    device_.Use();
    mark_.RecordExternal(device_.stream());
  }
  std::unique_ptr<AsyncReadback> NewReadback() override {
    device_.Use();
    return NewReadbackAt(device_, mark_, queue_.get());
  }

 private:
  const CudaDevice& device_;
  StreamEvent mark_;
  OwnedStream queue_{"making a queue of results (cudaStreamCreate)"};
};

}  // namespace

std::unique_ptr<CapturedEvent> MakeGraphMark(const CudaDevice& device) {
  device.Use();
  return std::make_unique<GraphMark>(device);
}

std::unique_ptr<CapturedGraph> CaptureGraph(const CudaDevice& device,
                                            const std::function<void()>& queue) {
  device.Use();
  Capture capture(device.stream());
  queue();
  const Graph graph = capture.Finish();
  size_t operations = 0;
  Check(GetRuntime()->GraphGetNodes(graph, nullptr, &operations),
        "counting what was recorded (cudaGraphGetNodes)");
  GraphExec exec = nullptr;
  Check(GetRuntime()->GraphInstantiate(&exec, graph),
        "preparing what was recorded (cudaGraphInstantiate)");
  return std::make_unique<GraphRecording>(device, exec, operations);
}

}  // namespace trainer::cuda

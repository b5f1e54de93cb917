#pragma once
// The communicator: how the ranks of one run exchange numbers. Each transport (processes, threads,
// GPUs) implements it in one file; net, optim and solver use only this interface.

#include <algorithm>
#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/base/ranks/rank.h"

namespace trainer {

// Receives the gradients of a backward pass as soon as each of them is final.
class GradientSink {
 public:
  virtual ~GradientSink() = default;
  // Called when the net adds nothing more to slice `slice` of the gradients in this pass. `values`
  // are contiguous f32 on the device, including the zeros between parameters. Called once per slice
  // and pass, in the order 0, 1, ..., on the thread that runs backward. The slices are the same in
  // each pass and on each rank. Consecutive slices are adjacent in memory if the net allocated its
  // parameters in that order, so an implementation may join several to one bucket.
  virtual void OnGradientReady(int slice, std::span<float> values) = 0;

  // Returns whether sums of gradients can start within a captured pass (a CUDA graph). The four
  // functions below are called only if so. Buckets are then the same in each pass: in the first
  // pass OnGradientReady announces them as usual.
  virtual bool SumsCapturedPasses() const { return false; }
  // States that from here on OnGradientReady is called while the device records: it marks where the
  // gradients of a bucket are final, and begins no sum.
  virtual void BeginCapture() {}
  // Called while the device records, after the last slice. From then on OnGradientReady starts
  // sums again.
  virtual void EndCapture() {}
  // Called instead of EndCapture, or after it, if there will be no recording. The slices that were
  // marked count as not ready.
  virtual void DropCapture() {}
  // Called when the device replays the recording: begins the sums of all its slices, each when the
  // device reaches its mark. The caller waits for them as for other sums.
  virtual void OnReplay() {}
};

// How long a rank communicates, for reports.
struct CommStats {
  double seconds = 0;     // of the training thread in calls of the communicator, mostly waiting
  double overlapped = 0;  // seconds in which another thread reduced while that one computed
};

// One rank's connection to the others. All ranks make the same calls in the same order. A call
// throws Error if another rank cannot be reached.
class Communicator : public GradientSink {
 public:
  virtual Rank rank() const = 0;
  // Returns when slice `slice` holds its sum over all ranks. OnGradientReady starts that sum in
  // place; the caller does not touch the slice between the two calls and waits for slices in order.
  virtual void WaitGradient(int slice) = 0;
  // Returns, after WaitGradient(slice), the last slice that was reduced together with `slice`.
  virtual int LastReduced(int slice) const { return slice; }
  // States that the slices of the next pass differ from those of earlier passes. Called while no
  // sum is in progress.
  virtual void ForgetSlices() {}
  // Replaces each number, in host memory, by its sum over all ranks. The result has the same bits
  // on each rank.
  virtual void AllReduce(std::span<float> values) = 0;
  // All sums, also the sums of slices, are added in a binary tree over the ranks: neighbours first,
  // then pairs of neighbours, and so on. Returns a sentence that says why this communicator adds in
  // another order; else "".
  virtual std::string WhyNotTreeOrder() const { return ""; }
  // On rank 0, returns what each rank gave, by rank; on the others, nothing.
  virtual std::vector<std::string> Gather(const std::string& own) = 0;
  // Replaces each number, in host memory, by rank 0's, bit for bit.
  virtual void Broadcast(std::span<float> values) {
    if (rank().rank != 0) std::ranges::fill(values, -0.0f);  // x + -0 is x, whatever x is
    AllReduce(values);
  }
  // Host memory that this communicator reduces without a copy, for the gradients of a device that
  // computes on the host; or null. All ranks allocate the same blocks in the same order.
  virtual std::pmr::memory_resource* gradient_memory() { return nullptr; }
  // Says that this rank is alive and has done `iterations` iterations. Ranks that wait do not take
  // a rank for lost as long as it calls this.
  virtual void Heartbeat(int iterations) { static_cast<void>(iterations); }
  // Returns the time spent in communication so far, or nothing if this communicator does not
  // measure it.
  virtual std::optional<CommStats> stats() const { return std::nullopt; }
  // Returns the name of a rank in messages: "rank 1 (node7, process 4711)", here only "rank 1".
  virtual std::string NameOf(int rank) const;

  // Returns when all ranks have called it.
  void Barrier();
  // Returns rank 0's value on all ranks. Collective.
  bool BroadcastBool(bool own);
  // Returns rank 0's text on all ranks. Collective. It may have at most 2^24 bytes, because its
  // length is sent as a float.
  std::string BroadcastString(const std::string& own);
};

}  // namespace trainer

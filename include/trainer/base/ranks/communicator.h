#pragma once
// How the replicas of one run reach each other. Whoever exchanges numbers between processes (or
// threads) implements it in one file; net, steps and solver know these calls alone.

#include <algorithm>
#include <memory_resource>
#include <span>
#include <string>
#include <vector>

#include "trainer/base/ranks/rank.h"

namespace trainer {

// Learns during a backward pass which gradients are final.
class GradientSink {
 public:
  virtual ~GradientSink() = default;
  // Nothing more will be added to slice `slice` of the gradients in this pass: `values`, contiguous
  // f32 on the device, gaps of zeros included. Called once per slice and pass, in the order of
  // their numbers 0, 1, ..., on the thread that runs backward. Slices are the same in each pass and
  // each replica, and neighbours in this order are neighbours in memory wherever the net's
  // parameters were laid out for it, so that several may be joined to one bucket.
  virtual void OnGradientReady(int slice, std::span<float> values) = 0;
};

// One replica's connection to the others. Every replica makes the same calls in the same order.
// A call throws Error where another replica cannot be reached.
class Communicator : public GradientSink {
 public:
  virtual Rank replica() const = 0;
  // Returns when the sum of slice `slice` over all ranks has arrived, which OnGradientReady starts
  // in place. No caller touches a slice between the two calls. Callers wait for slices in order.
  virtual void WaitFor(int slice) = 0;
  // The last of the slices whose sums have arrived with that of `slice`, after WaitFor(slice).
  virtual int ArrivedWith(int slice) const { return slice; }
  // Replaces each number, on the host, by its sum over all replicas, equal on each of them.
  virtual void Sum(std::span<float> values) = 0;
  // Sums, of slices too, are added as a binary tree over the ranks: those of neighbours, then of
  // pairs of neighbours, and so on. A sentence where the group cannot keep to it; else "".
  virtual std::string WhyNoTree() const { return ""; }
  // Of rank 0: what each replica gave, by rank. Of the others: nothing.
  virtual std::vector<std::string> Gather(const std::string& own) = 0;
  // Replaces each number, on the host, by that of rank 0, bit for bit.
  virtual void Broadcast(std::span<float> values) {
    if (replica().rank != 0) std::ranges::fill(values, -0.0f);  // x + -0 is x, whatever x is
    Sum(values);
  }
  // Memory of the host from which this group sums without a copy, for the gradients of a device
  // that computes there; or null. Every replica allocates the same blocks in the same order.
  virtual std::pmr::memory_resource* memory() { return nullptr; }
  // This replica is at work: it has done `iterations`, or another part of one. A replica that says
  // so for minutes while the others wait is not taken for a lost one.
  virtual void NoteProgress(int iterations) { static_cast<void>(iterations); }
};

}  // namespace trainer

#pragma once
// The snapshot that --quick writes, reads back and removes.

#include <cstdint>
#include <string>

#include "trainer/config/solver_spec.h"
#include "trainer/net/net.h"

namespace trainer {

// Snapshots next to the run's own ones, under a prefix of this process. The destructor removes
// them.
class QuickFiles {
 public:
  explicit QuickFiles(const caffe::SolverParameter& solver);
  ~QuickFiles();
  QuickFiles(const QuickFiles&) = delete;
  QuickFiles& operator=(const QuickFiles&) = delete;

  const std::string& prefix() const { return prefix_; }

  // Reads the newest snapshot and returns the size of its files in bytes. With `compares`, throws
  // kBadSnapshot if its weights differ from the weights of `net`. Throws as NewestSnapshot does.
  uint64_t ReadBack(const Net& net, bool compares) const;

 private:
  const std::string prefix_;
};

}  // namespace trainer

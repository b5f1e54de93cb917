#pragma once
// What would make the reading of a training set faster, from figures that were measured.

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/base/file/file_system.h"

namespace trainer {

// A source of a training net. Rates are records per second; 0: not measured.
struct InputFacts {
  std::string path;
  std::string kind;  // "LMDB", "LEVELDB", "TAR", "HDF5", "files" (a list of them)
  FileSystem where;
  uint64_t bytes = 0;         // of its files
  uint64_t largest_file = 0;  // bytes
  int stripes = 0;            // on Lustre, of the largest file; 0: not known
  double cold = 0, warm = 0;  // read one after the other
  double decoded = 0;         // by one thread, from memory
  double consumed = 0;        // by the net, without waiting
  int threads = 1;            // that decode
};

struct MachineFacts {
  int cores = 1;        // that this process may use
  int granted = 1;      // that the batch system or the container granted: more where a variable
                        // such as OMP_NUM_THREADS asks for fewer
  int machine = 1;      // that the machine has
  uint64_t memory = 0;  // bytes that it may take now
};

struct InputAdvice {
  double gain = 1;  // an iteration's time now by that with this done; 1: none that was measured
  std::string text;
};

// Sorted by gain, the greatest first. `facts` is what the training net reads.
std::vector<InputAdvice> AdviseOnInput(const std::vector<InputFacts>& facts,
                                       const MachineFacts& machine);

}  // namespace trainer

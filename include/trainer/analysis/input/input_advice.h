#pragma once
// Advice on how to read a training set faster, derived from measurements.

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/base/file/file_system.h"

namespace trainer {

// A data source of a training net. Rates are records per second; 0: not measured.
struct InputProfile {
  std::string path;
  std::string kind;  // "LMDB", "LEVELDB", "TAR", "HDF5", "files" (a list of image files)
  FileSystem where;
  uint64_t bytes = 0;         // of all its files
  uint64_t largest_file = 0;  // bytes
  int stripes = 0;            // of the largest file, on Lustre; 0: not known
  double cold = 0, warm = 0;  // read in order, without and with the system's file cache
  double decoded = 0;         // decoded by one thread, from memory
  double consumed = 0;        // by the net when it does not wait for data
  int threads = 1;            // that decode
};

// The cores and the memory for reading data.
struct HostResources {
  int cores = 1;        // that this process uses
  int granted = 1;      // that the batch system or the container granted; larger than `cores` if a
                        // variable such as OMP_NUM_THREADS asks for fewer
  int machine = 1;      // that the machine has
  uint64_t memory = 0;  // free memory in bytes
};

// One change that may speed up reading, as a sentence.
struct InputAdvice {
  double gain = 1;  // the expected speed-up of an iteration; 1: not measured
  std::string text;
};

// Returns advice on location, format and threads of each source and on cores, the largest gain
// first. `profiles` describes all sources of the training net.
std::vector<InputAdvice> AdviseInput(const std::vector<InputProfile>& profiles,
                                     const HostResources& host);

}  // namespace trainer

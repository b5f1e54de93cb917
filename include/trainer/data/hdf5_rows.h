#pragma once
// Rows from a list of HDF5 files: what HDF5Data reads. Each output is a dataset of that name in
// every file, and a row is what its first axis counts.

#include <memory>
#include <string>
#include <vector>

#include "trainer/base/random/philox.h"
#include "trainer/base/ranks/rank.h"
#include "trainer/config/layer_spec.h"
#include "trainer/data/prefetcher.h"

namespace trainer {

// A file of a list, and the line that names it.
struct ListedHdf5 {
  std::string path;
  int line = 0;  // from 1
};

// Reads a list of paths, which count from the working folder first, then from the list's. Throws
// kNoInput, kNoPermission, kIo; kData for an empty list.
std::vector<ListedHdf5> ReadHdf5List(const std::string& list);

// The source that an HDF5Data layer's hdf5_data_param asks for, an output for each top. Opens every
// file once; rows are read as they are needed, never whole files. With shuffle each epoch has
// another order of the files, and of the rows of each: a function of the key and the epoch's
// number.
//
// Throws kConfig at the field's line: transform_param, no source, batch_size out of range. kNoInput
// for a list or file that is not there; kData for an empty list, a dataset that is missing or not
// of numbers, datasets of one file with different numbers of rows, files whose rows differ in
// shape, and no rows at all; it names the line of the list. Restore throws kBadSnapshot when the
// files have another number of rows than they had.
std::unique_ptr<Prefetcher> MakeRowPrefetcher(const LayerSpec& layer, const ReadingEnv& env);

}  // namespace trainer

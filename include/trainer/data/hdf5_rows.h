#pragma once
// Batches of rows from a list of HDF5 files: each output is a dataset of that name in every file,
// and a row is what its first axis counts. Rows are read as they are needed, never whole files.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/base/philox.h"
#include "trainer/base/replica.h"
#include "trainer/data/prefetcher.h"
#include "trainer/data/read_ahead.h"
#include "trainer/hdf5/reader.h"
#include "trainer/tensor/shape.h"

namespace trainer {

// A file of a list, and the line that names it.
struct ListedHdf5 {
  std::string path;
  int line = 0;  // from 1
};

// Reads a list of paths, which count from the working folder first, then from the list's. Throws
// kNoInput, kNoPermission, kIo; kData for an empty list.
std::vector<ListedHdf5> ReadHdf5List(const std::string& list);

struct Hdf5RowsOptions {
  std::string list;                   // a text file of paths with blanks or lines between
  std::vector<std::string> datasets;  // one for each output
  int64_t batch_size = 1;
  int64_t depth = 4;     // batches ready ahead
  bool shuffle = false;  // each epoch another order of the files, and of the rows of each
  PhiloxKey key;         // of those orders: they depend on nothing else
  Replica replica;       // record k goes to rank k % count, k counted since training began
};

// One batch: the outputs in memory order (images NHWC), and where reading goes on. The key of the
// position is the number of rows in all files.
struct RowBatch {
  std::vector<std::vector<float>> outputs;
  Position next;
};

// See ReadAhead for the threads.
class Hdf5Rows {
 public:
  // Opens every file once. Throws kNoInput for a list or file that is not there; kData for an empty
  // list, a dataset that is missing or not of numbers, datasets of one file with different numbers
  // of rows, files whose rows differ in shape, and no rows at all; it names the line of the list.
  explicit Hdf5Rows(Hdf5RowsOptions options);
  ~Hdf5Rows();

  int num_files() const { return static_cast<int>(files_.size()); }
  // Of output `i`: (batch_size, what a row is ...).
  Shape shape(int i) const;

  // Goes on at a position saved earlier. Only before the first Next. Throws kBadSnapshot when the
  // files have another number of rows now.
  void Restore(const Position& position);
  const RowBatch& Next();
  // As of a Prefetcher: "row 7 of data/train.h5".
  std::string NameOfItem(int64_t item);
  // After the last batch given out: what Restore takes.
  const Position& position() const { return position_; }
  const WaitCounters& counters() const { return ahead_.counters(); }

 private:
  struct File {
    std::string path;
    SourceRef listed;  // the place in the list
    int64_t rows;
  };
  struct Row {
    size_t file;
    int64_t row;
  };

  void Inspect(File* file);
  void CheckRow(const Hdf5Array& array, size_t output, File* file);
  RowBatch MakeBatch() const;
  void Fill(RowBatch& batch);
  void BeginEpoch(int64_t skipped);
  void BeginFile();
  void Advance();
  void SkipOthers();  // to the next row of this replica
  Row Here() const;
  void Open(size_t file);
  void ReadRun(const Row& first, int64_t rows, int64_t at, RowBatch& batch);

  Hdf5RowsOptions options_;
  std::vector<File> files_;
  std::vector<std::vector<int64_t>> row_dims_;  // per output, without the first axis
  int64_t total_ = 0;                           // rows of all files
  Position position_, before_;                  // behind the last batch and before it

  // The reading thread's own, once it runs.
  Position at_;
  std::vector<uint32_t> file_order_, row_order_;  // row_order_ is empty unless shuffled
  size_t place_ = 0;                              // in file_order_
  int64_t row_ = 0;                               // in that file's order
  size_t open_file_ = SIZE_MAX;
  std::unique_ptr<Hdf5Reader> reader_;
  std::vector<Hdf5Array> arrays_;
  std::vector<Row> wanted_;
  std::vector<float> plain_;

  ReadAhead<RowBatch> ahead_;  // last: its thread uses the members above
};

}  // namespace trainer

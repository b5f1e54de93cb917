#pragma once
// Batches that threads read, decode and transform ahead of the training thread.

#include <cstdint>
#include <memory>
#include <memory_resource>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/base/ranks/rank.h"
#include "trainer/config/layer_spec.h"
#include "trainer/input/batch.h"
#include "trainer/input/counters.h"
#include "trainer/input/input_env.h"
#include "trainer/input/position.h"
#include "trainer/input/record_source.h"
#include "trainer/input/test_shard.h"
#include "trainer/input/transform.h"
#include "trainer/storage/cursor.h"
#include "trainer/tensor/shape.h"

namespace trainer {

class BatchWorkers;
class BatchSampler;

struct BatchQueueOptions {
  std::string backend;  // of a database: "LMDB", "LEVELDB"
  std::string path;     // of a database
  int64_t batch_size = 1;
  int64_t depth = 4;  // batches ready ahead
  bool labels = true;
  Rank rank;               // which of the records are read: see Next
  int parts = 1;           // of neighbouring replicas, that one the first
  int decode_threads = 1;  // what they make does not depend on it; 0: automatic
  std::pmr::memory_resource* memory = nullptr;  // of the batches; null: the heap
  bool bytes = false;                           // as InputEnv::bytes
  int most_bad = -1;                            // as MaxBadRecords
};

// One source of batches. Errors of the threads name the record and come out of Next, after the
// batches before it.
class BatchQueue {
 public:
  // Looks at the first record.
  BatchQueue(std::unique_ptr<RecordSource> source, const BatchQueueOptions& options);
  // Opens a database.
  BatchQueue(const BatchQueueOptions& options, const Transform& transform);
  ~BatchQueue();
  BatchQueue(const BatchQueue&) = delete;
  BatchQueue& operator=(const BatchQueue&) = delete;

  // The database or list, for messages.
  const std::string& path() const;
  // Of the outputs of each part of a batch.
  int num_outputs() const { return static_cast<int>(shapes_.size()); }
  const Shape& shape(int i = 0) const { return shapes_[static_cast<size_t>(i)]; }
  // What makes numbers of the batches' bytes; null where they hold numbers.
  const Normalization* normalization() const { return normalization_; }

  // As RecordSource::CountRecords. Only before the first Next.
  int64_t CountRecords(bool reads_keys);
  // Of one part of a batch.
  int64_t batch_size() const { return batch_size_; }

  // Goes on at a position saved earlier, by this or another replica. Only before the first Next.
  // Throws kBadSnapshot when the source has no such record: it is not the one the snapshot was made
  // with.
  void Restore(const Position& position);

  // Gives this replica every count-th batch of those that it would read alone. Only before the
  // first Next, in a net that shares no records; a rank without a batch must not ask for one. After
  // a batch position() is where the next round begins, or the next one with a batch for this rank.
  void Share(const TestShard& share);

  // The next batch; the former one is taken back. Of the records from position() on, this replica
  // takes number rank, rank + count, ... of the next batch_size * count. With several parts the
  // batches of as many replicas follow each other in it, along the first axis.
  const Batch& Next();
  int parts() const { return parts_; }
  // Waits until the next `batches` are ready, or as many as are read ahead, and throws what Next
  // would throw for one of them. What was taken and position() stay.
  void Await(int64_t batches);
  // Whether Next would give a batch without waiting.
  bool IsReady() const;

  // Where an item of the last batch, counted through its parts, comes from: "record '00000007' of
  // data/train_lmdb"; "" when it
  // cannot be told any more. Ends the reading, so that nothing is kept for it: for the message with
  // which a run ends.
  std::string NameOfItem(int64_t item) { return NameOfItem(before_, item); }
  // The same for the batch that began at `position`, taken from it before.
  std::string NameOfItem(const Position& position, int64_t item);

  // After the last batch given out: what Restore takes. The same for all replicas that have taken
  // as many batches.
  const Position& position() const { return position_; }
  const InputCounters& counters() const;

 private:
  std::unique_ptr<RecordSource> source_;
  std::vector<Shape> shapes_;
  int64_t batch_size_;
  int parts_;
  const Normalization* normalization_;
  Position position_, before_;  // after the last batch and before it
  std::unique_ptr<BatchSampler> feed_;
  std::unique_ptr<BatchWorkers> threads_;  // last: they use the members above
};

}  // namespace trainer

#pragma once
// The prefetch queue: threads read, decode and transform batches ahead of the training thread.

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "trainer/base/ranks/rank.h"
#include "trainer/base/thread/blocking_queue.h"
#include "trainer/input/batch.h"
#include "trainer/input/counters.h"
#include "trainer/input/decoder.h"
#include "trainer/input/position.h"
#include "trainer/input/test_shard.h"
#include "trainer/tensor/shape.h"

namespace trainer {

class BatchSampler;
class Error;
class ThreadTuner;

struct BatchQueueOptions {
  int64_t batch_size = 1;
  int64_t depth = 4;  // batches that are kept ready
  bool labels = true;
  Rank rank;               // selects the records that are read: see Next
  int virtual_ranks = 1;   // the queue serves ranks [rank.rank, rank.rank + virtual_ranks)
  int decode_threads = 1;  // 0: automatic; batches do not depend on it
  std::pmr::memory_resource* memory = nullptr;  // for the batches; null: the heap
  bool bytes = false;                           // see InputEnv::bytes
  int most_bad = -1;                            // see MaxBadRecords
};

// A bounded queue of batches, which worker threads fill. The number of threads is given, or the
// queue adds threads while they make batches come faster. A single worker reads and decodes without
// locks. Several workers take turns at reading a few records each, and decode them concurrently
// into their rows.
//
// Batches come out in order. Neither their content nor the error that ends reading depends on the
// number of threads: the error is the one of the first bad record and names it, and Next throws it
// after it returned the batches before that record.
//
// One thread uses the queue. The workers start with the first Next. Nothing is allocated once all
// buffers were used and all threads were started.
class BatchQueue {
 public:
  // Reads the first record if the shapes of the batches depend on it.
  BatchQueue(RecordSource source, const BatchQueueOptions& options);
  ~BatchQueue();

  // Names the database or list in messages.
  const std::string& path() const { return source_.sampler->path(); }
  // Number of tensors per batch, and their shapes for one rank.
  int num_outputs() const { return static_cast<int>(shapes_.size()); }
  const Shape& shape(int i = 0) const { return shapes_[static_cast<size_t>(i)]; }
  // Converts the batches' bytes to floats; null if batches hold floats.
  const Normalization* normalization() const { return normalization_; }

  // See RecordSampler::CountRecords. Call it before the first Next.
  int64_t CountRecords(bool reads_keys);
  // Records per batch of one rank.
  int64_t batch_size() const { return batch_size_; }

  // Resumes at `position`, which any rank may have saved. Call it before the first Next. Throws
  // kBadSnapshot if the data set has no such record, i.e. it is not the set of the snapshot.
  void Restore(const Position& position);

  // Divides whole batches among ranks: returns every count-th batch that a single rank would read.
  // Call it before the first Next, if one rank reads all records; a rank without a batch must not
  // call Next. After a batch, position() is where the next round with a batch for this rank begins.
  void SetTestShard(const TestShard& shard);

  // Returns the next batch; the previous one becomes invalid. From the next batch_size * ranks
  // records after position(), the batch holds the records rank, rank + ranks, ... The batches of
  // several virtual ranks follow each other along the first axis.
  const Batch& Next();
  int virtual_ranks() const { return virtual_ranks_; }
  // Waits until so many batches, or all that the queue keeps, are ready. Throws what Next would.
  void Await(int64_t batches);
  // Whether Next would return without waiting.
  bool IsReady() const { return full_.Count() > 0; }

  // Names an item of the last batch, or of the one that began at `position`, counted over all
  // virtual ranks: "record '00000007' of data/train_lmdb"; "" if the queue has forgotten it. Ends
  // reading: call it only for the message of a fatal error.
  std::string RecordName(int64_t item) { return RecordName(before_, item); }
  std::string RecordName(const Position& position, int64_t item);

  // The position after the last batch, the same on all ranks that took as many batches.
  const Position& position() const { return position_; }
  const InputCounters& counters() const { return counters_; }

 private:
  // A batch that workers are filling.
  struct PendingBatch {
    Batch batch;
    int64_t unfinished = 0;     // records that are not yet decoded
    bool is_complete = false;   // all records are decoded; published after the batches before it
    std::vector<uint64_t> bad;  // the epochs of its bad records
    int64_t failed_at = 0;      // index of the first record with an error
    std::exception_ptr error;
  };
  // Records that one worker has taken.
  struct RecordRange {
    PendingBatch* pending = nullptr;
    int64_t first = 0;  // index in the batch
    size_t records = 0;
    std::exception_ptr failure;       // from reading the record after them
    std::vector<uint64_t> bad;        // the epochs of its bad records
    std::optional<WorkSeconds> work;  // unless it is not measured
    WorkSeconds* measured() { return work ? &*work : nullptr; }
  };

  bool started() const { return !threads_.empty(); }
  void RequireNotStarted(const char* what) const;
  // Ends the workers. The current batch stays valid, and the sampler may be used.
  void Stop();
  void StartOnce();
  void StartThreads(size_t count);
  void Wait(size_t count);
  void CountWork(const Batch& batch);

  void RunSingle(const std::stop_token& stop);
  void RunShared(size_t index, const std::stop_token& stop);
  RecordRange TakeRange(std::span<Record> records, const std::stop_token& stop);
  PendingBatch* StartBatch(Batch batch);
  void FinishRange(const RecordRange& range, const std::exception_ptr& error);
  size_t Read(std::span<Record> records, WorkSeconds* work, std::exception_ptr* failure);
  void Decode(std::span<const Record> records, Decoder* decoder, WorkSeconds* work, Batch* batch,
              std::vector<uint64_t>* bad);
  void DecodeOrSkip(std::span<const Record> records, Decoder* decoder, Batch* batch,
                    std::vector<uint64_t>* bad);
  void DecodeReplacement(const Record& bad, const Error& why, Decoder* decoder, Batch* batch);

  RecordSource source_;
  std::unique_ptr<BatchSampler> sampler_;
  std::vector<Shape> shapes_;
  int64_t batch_size_;
  int virtual_ranks_;
  const Normalization* normalization_ = nullptr;
  int64_t depth_;
  std::pmr::memory_resource* memory_;
  int most_bad_;
  std::vector<std::unique_ptr<Decoder>> decoders_;
  // Records that a worker reads before it decodes them, if it works alone or with others.
  size_t single_range_ = 1, shared_range_ = 1;

  // The consumer uses these.
  Position position_, before_;  // after the last batch and before it
  Batch current_;
  bool has_current_ = false, took_ = false, stopped_ = false;
  InputCounters counters_;
  bool tunes_;  // whether the queue chooses the number of workers
  std::unique_ptr<ThreadTuner> tuner_;
  double last_taken_ = 0;
  double waited_ = 0;  // seconds, for the next batch

  BlockingQueue<Batch> free_, full_;
  std::atomic<size_t> wanted_;  // number of workers

  // Guards the members below. The worker that takes records holds it, even while it waits for a
  // free batch. A single worker holds it all the time.
  std::mutex taking_;
  bool single_ = false;
  PendingBatch* taken_ = nullptr;
  bool read_failed_ = false;

  // Guards the sampler, for a short time; locked after taking_. A worker that needs a replacement
  // for a bad record must not wait for a free batch, because its own batch may be the next one.
  std::mutex sampling_;

  std::mutex finishing_;  // guards the members below; locked after the others
  std::vector<PendingBatch> pending_;
  uint64_t begun_ = 0, published_ = 0;  // batch n is pending_[n % size]
  bool failed_ = false;

  std::stop_source stop_;
  std::vector<std::jthread> threads_;  // last, because the threads use the members above
};

}  // namespace trainer

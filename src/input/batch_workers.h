#pragma once
// Threads that fill batches ahead of the thread that uses them.

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <thread>
#include <vector>

#include "batch_sampler.h"
#include "thread_tuner.h"
#include "trainer/base/thread/channel.h"
#include "trainer/input/batch.h"
#include "trainer/input/counters.h"
#include "trainer/input/record_source.h"
#include "trainer/tensor/shape.h"

namespace trainer {

class Error;

// One thread for each decoder, or as many as help. A single one fetches
// and decodes by itself, without locks. Of several, each takes the next few records from the feed,
// one thread at a time, and decodes them into their slots beside the others; batches are given out
// in order. The bytes of a batch do not depend on the number of threads, nor does the error that
// ends the reading: that of the first bad record, after the batches before it.
//
// The public members are for one thread, the consumer; the others start with the first Next and end
// with Stop or the object. Nothing is allocated once all buffers were used and all threads started.
class BatchWorkers {
 public:
  // What a batch is made like: see MakeBatch.
  struct Form {
    std::vector<Shape> shapes;
    std::pmr::memory_resource* memory = nullptr;
    PixelType elements = PixelType::kFloat;
  };
  // How many records a thread fetches before it decodes them.
  struct ChunkSize {
    size_t alone = 1, beside_others = 1;
  };

  // Begins with `first` threads, at most as many as there are decoders. `depth` batches are kept
  // ready. `most_bad`: as MaxBadRecords.
  BatchWorkers(BatchSampler* feed, std::vector<std::unique_ptr<Decoder>> decoders, int first,
               Form form, int64_t depth, ChunkSize at_once, int most_bad);
  ~BatchWorkers() { Stop(); }
  BatchWorkers(const BatchWorkers&) = delete;
  BatchWorkers& operator=(const BatchWorkers&) = delete;

  bool started() const { return !threads_.empty(); }
  const InputCounters& counters() const { return counters_; }

  // The next batch; the former one is taken back.
  const Batch& Next();
  // Waits until the next `count` batches are ready, or as many as are read ahead. Throws what Next
  // would throw for one of them.
  void Await(int64_t count);
  // Whether Next would give a batch without waiting.
  bool IsReady() const { return full_.Count() > 0; }

  // Ends the threads, and with them what Next gives. The last batch stays, and the feed is free.
  void Stop();

 private:
  // A batch that is being filled by several threads.
  struct PendingBatch {
    Batch batch;
    int64_t unfinished = 0;     // records
    bool is_complete = false;   // and to be given out
    std::vector<uint64_t> bad;  // the epochs of bad records
    int64_t bad_record = 0;     // the number in the batch of the first one with an error
    std::exception_ptr error;
  };
  // The records that one thread has taken.
  struct RecordRange {
    PendingBatch* work = nullptr;
    int64_t first = 0;  // its number in the batch
    size_t records = 0;
    std::exception_ptr failure;  // nothing could be fetched after them
    std::vector<uint64_t> bad;   // of them: their epochs
    bool measured = false;
    WorkSeconds stages;
  };

  void StartOnce();
  void StartThreads(size_t count);
  void Wait(size_t count);
  void Watch(size_t count) const;
  void NoteStages(const Batch& batch);
  void Tune(bool first, double waited);
  void RunSingle(const std::stop_token& stop);
  void RunShared(size_t index, const std::stop_token& stop);
  RecordRange Take(std::span<Record> records, const std::stop_token& stop);
  PendingBatch* StartBatch(Batch batch);
  void FinishRange(const RecordRange& part, const std::exception_ptr& error);
  void Publish(PendingBatch* work);
  static void Clear(Batch* batch);
  static void NoteBad(const std::vector<uint64_t>& epochs, Batch* batch);
  static bool IsMeasured(uint64_t batch);
  size_t Fetch(std::span<Record> records, bool measured, WorkSeconds* stages,
               std::exception_ptr* failure);
  std::vector<uint64_t> Decode(std::span<const Record> records, Decoder* decoder, bool measured,
                               WorkSeconds* stages, Batch* batch);
  std::vector<uint64_t> DecodeOrSkip(std::span<const Record> records, Decoder* decoder,
                                     Batch* batch);
  void DecodeReplacement(const Record& bad, const Error& why, Decoder* decoder, Batch* batch);

  BatchSampler& feed_;
  std::vector<std::unique_ptr<Decoder>> decoders_;
  Form form_;
  int64_t depth_;
  ChunkSize at_once_;
  bool tunes_;  // the number of threads
  int most_bad_;

  // The consumer's.
  Batch current_;
  bool has_current_ = false, stopped_ = false;
  InputCounters counters_;
  ThreadTuner tuner_;
  double last_taken_ = 0;
  double waited_ = 0;  // for the next batch
  bool took_ = false;  // a batch

  Channel<Batch> free_, full_;
  std::atomic<size_t> wanted_;  // threads

  // Who takes records next, maybe waiting for a batch to put them in; guards these. A thread that
  // is alone holds it all the time.
  std::mutex taking_;
  bool alone_ = false;
  PendingBatch* fetched_ = nullptr;
  bool fetch_failed_ = false;

  // The feed, for a short time. A thread that looks for another record in the place of a bad one
  // must not wait until a batch is free: the one that it works on may be the next.
  std::mutex feeding_;  // taken after taking_ where both are

  std::mutex finishing_;  // guards these; taken after the others where several are
  std::vector<PendingBatch> works_;
  uint64_t begun_ = 0, given_out_ = 0;  // batch n is works_[n % size]
  bool failed_ = false;

  std::stop_source stop_;
  std::vector<std::jthread> threads_;
};

}  // namespace trainer

#pragma once
// Threads that fill batches ahead of the thread that uses them.

#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <thread>
#include <vector>

#include "record_feed.h"
#include "trainer/base/channel.h"
#include "trainer/data/batch.h"
#include "trainer/data/read_ahead.h"
#include "trainer/data/record_source.h"
#include "trainer/tensor/shape.h"

namespace trainer {

// One thread for each decoder. A single one fetches and decodes by itself, without locks. Of
// several, each takes the next few records from the feed, one thread at a time, and decodes them
// into their slots beside the others; batches are given out in order. The bytes of a batch do not
// depend on the number of threads, nor does the error that ends the reading: that of the first bad
// record, after the batches before it.
//
// The public members are for one thread, the consumer; the others start with the first Next and end
// with Stop or the object. Nothing is allocated once all buffers were used.
class BatchThreads {
 public:
  // What a batch is made like: see MakeBatch.
  struct Form {
    std::vector<Shape> shapes;
    std::pmr::memory_resource* memory = nullptr;
    BatchForm elements = BatchForm::kNumbers;
  };

  // `depth` batches are kept ready.
  BatchThreads(RecordFeed* feed, std::vector<std::unique_ptr<Decoder>> decoders, Form form,
               int64_t depth, size_t records_at_once);
  ~BatchThreads() { Stop(); }
  BatchThreads(const BatchThreads&) = delete;
  BatchThreads& operator=(const BatchThreads&) = delete;

  bool started() const { return !threads_.empty(); }
  const WaitCounters& counters() const { return counters_; }

  // The next batch; the former one is taken back.
  const Batch& Next();
  // Whether Next would give a batch without waiting.
  bool IsReady() const { return full_.HasValue(); }

  // Ends the threads, and with them what Next gives. The last batch stays, and the feed is free.
  void Stop();

 private:
  // A batch that is being filled by several threads.
  struct Work {
    Batch batch;
    int64_t unfinished = 0;  // records
    int64_t bad_record = 0;  // the number in the batch of the first one with an error
    std::exception_ptr error;
  };
  // The records that one thread has taken.
  struct Part {
    Work* work = nullptr;
    int64_t first = 0;  // its number in the batch
    size_t records = 0;
    std::exception_ptr failure;  // nothing could be fetched after them
  };

  void Start();
  Batch Wait(bool first);
  void RunAlone(const std::stop_token& stop);
  void RunBesideOthers(Decoder* decoder, const std::stop_token& stop);
  Part Take(std::span<RawRecord> records, const std::stop_token& stop);
  Work* Begin(Batch batch);
  void Finish(const Part& part, const std::exception_ptr& error);
  void GiveOut(Work* work);

  RecordFeed& feed_;
  std::vector<std::unique_ptr<Decoder>> decoders_;
  Form form_;
  int64_t depth_;
  size_t records_at_once_;

  // The consumer's.
  Batch current_;
  bool has_current_ = false, stopped_ = false;
  WaitCounters counters_;

  Channel<Batch> free_, full_;

  std::mutex fetching_;  // guards the feed, and these:
  Work* fetched_ = nullptr;
  bool fetch_failed_ = false;

  std::mutex finishing_;  // guards these; taken after fetching_ where both are
  std::vector<Work> works_;
  uint64_t begun_ = 0, given_out_ = 0;  // batch n is works_[n % size]
  bool failed_ = false;

  std::stop_source stop_;
  std::vector<std::jthread> threads_;
};

}  // namespace trainer

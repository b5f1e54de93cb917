#pragma once
// A thread that reads, transforms and batches records ahead of the training thread.

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "trainer/base/channel.h"
#include "trainer/base/philox.h"
#include "trainer/base/shard.h"
#include "trainer/config/layer_spec.h"
#include "trainer/data/cursor.h"
#include "trainer/data/datum.h"
#include "trainer/data/transform.h"
#include "trainer/tensor/shape.h"

namespace trainer {

// Where reading goes on: all that a bit-exact resume needs.
struct Position {
  uint64_t record = 0;  // how many records were passed since training began, other shards' included
  uint64_t epoch = 0;   // how often reading came back to the first record
  std::string key;      // of the next record; empty: the database's first

  // A printable head and the key's bytes. Decode throws kBadSnapshot for anything else.
  std::string Encode() const;
  static Position Decode(const std::string& text);
  bool operator==(const Position&) const = default;
};

// Numbers for (N, C, H, W), NHWC in memory, and the labels (N) as floats, as losses take them.
struct Batch {
  std::vector<float> data;
  std::vector<float> labels;  // empty unless asked for
  Position next;              // after this batch
};

struct PrefetchOptions {
  std::string backend;  // "LMDB", "LEVELDB"
  std::string path;
  int64_t batch_size = 1;
  int64_t depth = 4;  // batches ready ahead
  bool labels = true;
  Shard shard;          // record k goes to rank k % count, k counted since training began
  bool is_root = true;  // whether it logs
};

// How often the consumer found no batch ready, and for how long it then waited. The first batch
// after the start is apart: there the queue is only filling.
struct WaitCounters {
  uint64_t waits = 0;
  double wait_seconds = 0;
  double first_wait_seconds = 0;
};

// Whether the n-th wait, counted from 1, is worth a line in the log: the first of each thousand.
constexpr bool LogsWait(uint64_t n) { return n % 1000 == 1; }

// One source of batches. The members are for one thread, the consumer; the reading thread starts
// with the first Next and ends with the object. Nothing is allocated once all buffers went round.
//
// Errors of the reading thread come out of Next, after the batches before them. They name the
// record; kData: another shape than the first record, no label.
class Prefetcher {
 public:
  // Opens the database and looks at its first record.
  Prefetcher(PrefetchOptions options, Transform transform);
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // (N, C, H, W) of each batch.
  Shape shape() const;

  // Goes on at a position saved earlier. Only before the first Next. Throws kBadSnapshot when the
  // database has no record of that key: it is not the one the snapshot was made with.
  void Restore(const Position& position);

  // The next batch; the former one is taken back.
  const Batch& Next();

  // After the last batch given out: what Restore takes.
  const Position& position() const { return current_.next; }
  const WaitCounters& counters() const { return counters_; }

 private:
  void Start();
  void Run(const std::stop_token& stop);
  void Fill(Batch& batch);
  void AddRecord(Batch& batch, int64_t index);
  void CheckShape(const DatumView& datum);
  void Advance();
  Batch WaitForBatch(bool first);

  PrefetchOptions options_;
  Transform transform_;
  ImageShape image_;
  Batch current_;
  bool started_ = false;
  WaitCounters counters_;

  // The reading thread's own, once it runs.
  std::unique_ptr<Cursor> cursor_;
  DatumParser parser_;
  Position at_;
  std::string shape_key_;  // the record that gave the shape
  ImageShape last_in_;     // the last record's own shape, checked already

  Channel<Batch> free_, full_;
  std::jthread thread_;  // last: it stops before what it uses goes away
};

// The source that a Data layer's data_param and transform_param ask for. The number of tops says
// whether labels are wanted. Throws kConfig at the field's line: no source, batch_size or prefetch
// out of range.
std::unique_ptr<Prefetcher> MakePrefetcher(const LayerSpec& layer, caffe::Phase phase,
                                           const PhiloxKey& key, const Shard& shard, bool is_root);

}  // namespace trainer

#pragma once
// A thread that reads, transforms and batches records ahead of the training thread.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/base/philox.h"
#include "trainer/base/replica.h"
#include "trainer/config/layer_spec.h"
#include "trainer/data/read_ahead.h"
#include "trainer/data/record_source.h"
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
  std::string backend;  // of a database: "LMDB", "LEVELDB"
  std::string path;     // of a database
  int64_t batch_size = 1;
  int64_t depth = 4;  // batches ready ahead
  bool labels = true;
  Replica replica;  // record k goes to rank k % count, k counted since training began
};

// One source of batches, read ahead; see ReadAhead for the threads. Errors of the reading thread
// name the record; kData: another shape than the first record, no label.
class Prefetcher {
 public:
  // Looks at the first record.
  Prefetcher(std::unique_ptr<RecordSource> source, PrefetchOptions options, Transform transform);
  // Opens a database.
  Prefetcher(const PrefetchOptions& options, const Transform& transform);
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // (N, C, H, W) of each batch.
  Shape shape() const;

  // Goes on at a position saved earlier. Only before the first Next. Throws kBadSnapshot when the
  // source has no record of that key: it is not the one the snapshot was made with.
  void Restore(const Position& position);

  // The next batch; the former one is taken back.
  const Batch& Next();

  // Where an item of the last batch comes from: "record '00000007' of data/train_lmdb"; "" when it
  // cannot be told any more. Ends the reading, so that nothing is kept for it: for the message with
  // which a run ends.
  std::string NameOfItem(int64_t item);

  // After the last batch given out: what Restore takes.
  const Position& position() const { return position_; }
  const WaitCounters& counters() const { return ahead_.counters(); }

 private:
  Batch MakeBatch() const;
  void Fill(Batch& batch);
  void AddRecord(Batch& batch, int64_t index);
  void CheckShape(const DatumView& datum);
  void Advance();
  void SkipOthers();  // to the next record of this replica

  PrefetchOptions options_;
  Transform transform_;
  ImageShape image_;
  Position position_, before_;  // behind the last batch and before it

  // The reading thread's own, once it runs.
  std::unique_ptr<RecordSource> source_;
  Position at_;
  std::string shape_key_;  // the record that gave the shape
  ImageShape last_in_;     // the last record's own shape, checked already

  ReadAhead<Batch> ahead_;  // last: its thread uses the members above
};

// What the layers that read ahead have in common. `param` is the layer's own message; labels are
// wanted by a second top; only TRAIN nets share their records among replicas. Throws kConfig at the
// field's line: batch_size, or data_param's prefetch, out of range.
PrefetchOptions ReadPrefetchOptions(const LayerSpec& layer, std::string_view param,
                                    uint32_t batch_size, caffe::Phase phase,
                                    const Replica& replica);

// The database that a Data layer's data_param names. Throws as OpenCursor does, at the layer's
// line.
std::unique_ptr<Cursor> OpenLayersDatabase(const LayerSpec& layer);

// The source that a Data layer's data_param and transform_param ask for. Throws as
// ReadPrefetchOptions and OpenLayersDatabase do, and kConfig without a source.
std::unique_ptr<Prefetcher> MakePrefetcher(const LayerSpec& layer, caffe::Phase phase,
                                           const PhiloxKey& key, const Replica& replica);

}  // namespace trainer

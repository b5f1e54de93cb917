#pragma once
// Functions that act on all data layers of a net.

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>

#include "trainer/layers/data_layer.h"
#include "trainer/net/net.h"

namespace trainer {

// Waits until all data layers have the batches of the next `passes`, or as many as they read ahead.
// Throws what one of these passes would throw because its batch is missing; the net is unchanged
// then.
void WaitForBatches(const Net& net, int passes);

// Sums the bad records that the data layers skipped since the last call over all ranks, by
// `all_reduce` (empty for a single rank), and tells the layers. A collective call. Throws kData if
// there are more than may be skipped; does nothing if bad records end a run.
void ReduceBadRecords(const Net& net, const std::function<void(std::span<float>)>& all_reduce);

// Lets the data layers of a test net read only the batches of `shard`, so that several ranks share
// a test. Before the first pass, and before Restore. Batch k of the run is then pass k: the caller
// sets passes. Returns false, and changes nothing, if the outputs of a batch depend on the batches
// before it, or if the net does more than compute outputs: if a layer keeps a state, changes the
// weights, writes a file, gives outputs whose size may change, or reads what cannot be sharded.
bool ShardTestBatches(Net& net, const TestShard& shard);

// Sets the batches that the data layers read, whatever else the net does. Before the first pass,
// and before Restore.
void SetTestShard(Net& net, const TestShard& shard);

// The counters of each data layer, by the layer's name.
std::map<std::string, InputCounters> CountersOfDataLayers(const Net& net);

// Seconds that the net has waited for batches, the first one included.
double SecondsWaitedForData(const Net& net);

// Returns the exact number of records that an epoch of the layer has, 0 for a layer without epochs
// and for one that reads the standard input. Opens the set as the layer would and throws the same
// errors. Reads all keys of a LevelDB.
int64_t CountLayerRecords(const LayerSpec& layer);

// The epoch of the first layer that reads records: how often it came back to the first record. -1
// without such a layer.
int64_t EpochOf(const Net& net);

// The records of one pass: the first axis of that layer's output 0. 0 without such a layer.
int64_t RecordsPerPass(const Net& net);

}  // namespace trainer

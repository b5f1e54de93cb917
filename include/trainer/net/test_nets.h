#pragma once
// The nets of one test: the net for whole batches and, for an exact pass, the net for a smaller
// last batch.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/net/net.h"

namespace trainer {

// The data that the data layers of a test net read.
struct TestData {
  int64_t records = 0;     // of one pass; 0: no layer reads records in passes; -1: unknown
  int64_t batch = 0;       // records of one batch; 0: no layer reads records
  std::string layer;       // the layer that reads them
  std::string difference;  // set if two layers read different numbers, so that `records` is unknown
};

// Call before the first pass of the net. `reads_keys`: see RecordSampler::CountRecords.
TestData TestDataOf(const Graph& graph, bool reads_keys);

// If the number of batches does not fit the data, means count some records more often than others.
// Returns a line with both numbers and what to write instead; "" if it fits or if the number of
// records is unknown. `setting`: "test_iter", "--iterations".
std::string MisfitOfTest(const TestData& data, int64_t batches, const std::string& setting);

// The batches of one test.
struct TestBatches {
  TestData data;
  int count = 0;        // whole ones
  int64_t records = 0;  // of a whole batch
  int64_t rest = 0;     // records of the last batch; 0: all batches are whole
};

// The graphs of TestNets' nets, for planning. Throws what TestNets and Compile throw.
struct TestGraphs {
  std::vector<std::unique_ptr<const NetSpec>> specs;  // of graphs with another batch size
  std::unique_ptr<const Graph> whole, rest;           // `rest` is null if all batches are whole
};
TestGraphs CompileTest(const NetSpec& spec, const NetOptions& options, const Device& device,
                       ParamStore& params, int batches);

class TestNets {
 public:
  // `batches`: the number of whole batches of a test; 0 for one exact pass, in which each record is
  // computed once. In an exact pass the net has batches no larger than the data, and rest()
  // computes the records left after the whole batches. `spec`, `device` and `params` must outlive
  // the nets. Throws kConfig at the net's file if an exact pass is impossible: no layer reads
  // records in passes, or the net cannot be built for the smaller last batch.
  TestNets(const NetSpec& spec, const NetOptions& options, const Device& device, ParamStore& params,
           int batches);

  Net& net() { return *net_; }
  std::unique_ptr<Net> TakeNet() { return std::move(net_); }
  Net* rest() { return rest_.get(); }  // null if all batches are whole
  void DropRest() { rest_ = nullptr; }

  int batches() const { return batches_.count; }
  int64_t batch_records() const { return batches_.records; }
  int64_t rest_records() const { return batches_.rest; }
  int64_t skips() const { return rest_ ? batches_.rest : 0; }  // at the end of a pass of net()
  const TestData& data() const { return batches_.data; }

 private:
  std::vector<std::unique_ptr<const NetSpec>> specs_;  // for nets with another batch size
  std::unique_ptr<Net> net_, rest_;
  TestBatches batches_;
};

}  // namespace trainer

#pragma once
// The nets that compute one test: that of the whole batches, and of an exact pass that of the last
// batch where it is smaller.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/net/net.h"

namespace trainer {

// The data of a test: what the data layers of a net read.
struct TestData {
  int64_t records = 0;     // of one pass; 0: no layer reads records in passes; -1: not known
  int64_t batch = 0;       // records of one batch; 0: no layer reads records
  std::string layer;       // that reads them
  std::string difference;  // where two layers read different numbers, which `records` cannot tell
};

// Before the first pass of the net. `reads_keys`: as RecordSampler::CountRecords.
TestData TestDataOf(const Net& net, bool reads_keys);

// A number of batches that does not fit the data gives means in which some records count more
// often than others. Says so with both numbers and what to write instead; "" where it fits, or
// where the number of records is not known. `setting`: "test_iter", "--iterations".
std::string MisfitOfTest(const TestData& data, int64_t batches, const std::string& setting);

class TestNets {
 public:
  // `batches`: whole batches of a test; 0: one exact pass, in which each record is computed once.
  // Then the net is built for batches no larger than the data, and the records that are left after
  // the whole batches are computed by the net rest(). `spec`, `device` and `params` must outlive
  // the nets. Throws kConfig at the net's file where an exact pass cannot be made: no layer reads
  // records in passes, or a smaller last batch is needed and the net has no form for it.
  TestNets(const NetSpec& spec, const NetOptions& options, const Device& device, ParamStore& params,
           int batches);

  Net& net() { return *net_; }
  std::unique_ptr<Net> TakeNet() { return std::move(net_); }
  Net* rest() { return rest_.get(); }  // null where all batches are whole
  void DropRest() { rest_ = nullptr; }

  int batches() const { return batches_; }                     // whole ones
  int64_t batch_records() const { return batch_; }             // of a whole batch
  int64_t rest_records() const { return rest_records_; }       // of the last one; 0: it is whole
  int64_t skips() const { return rest_ ? rest_records_ : 0; }  // that net() passes over at the end
  const TestData& data() const { return data_; }

 private:
  void MakeExact(const NetSpec& spec, const NetOptions& options, const Device& device,
                 ParamStore& params);
  std::unique_ptr<Net> WithBatches(const NetSpec& spec, int64_t size, NetOptions options,
                                   const Device& device, ParamStore& params);

  std::vector<std::unique_ptr<const NetSpec>> specs_;  // of nets with other batches
  std::unique_ptr<Net> net_, rest_;
  int batches_;
  int64_t batch_ = 0, rest_records_ = 0;
  TestData data_;
};

}  // namespace trainer

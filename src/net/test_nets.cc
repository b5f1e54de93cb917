#include "trainer/net/test_nets.h"

#include <glog/logging.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/config/batch_size.h"
#include "trainer/layers/data_layer.h"
#include "trainer/net/data_layers.h"

namespace trainer {
namespace {

// Returns the specification with another batch size. Data layers prefetch one batch, because such a
// net computes one batch of a test.
NetSpec Resized(const NetSpec& spec, int64_t from, int64_t to) {
  NetSpec resized;
  resized.proto = spec.proto;
  resized.layers = spec.layers;
  resized.file = spec.file;
  resized.tree = spec.tree;
  for (LayerSpec& layer : resized.layers) {
    caffe::LayerParameter& proto = layer.mutable_proto();
    bool reads = false;
    ChangeBatchSizes(&proto, true, [&](int64_t size) {
      reads = true;
      return size == from ? to : size;
    });
    if (reads && !proto.has_dummy_data_param()) proto.mutable_data_param()->set_prefetch(1);
  }
  return resized;
}

bool WritesFiles(const Net& net) {
  return std::ranges::any_of(net.graph().nodes,
                             [](const Node& node) { return node.signature.writes_files; });
}

// Returns the largest divisor of `records` that is not larger than `batch`.
int64_t FittingBatch(int64_t records, int64_t batch) {
  while (records % batch != 0) --batch;
  return batch;
}

}  // namespace

TestData TestDataOf(const Net& net, bool reads_keys) {
  TestData data;
  for (const Node& node : net.graph().nodes) {
    DataLayer* const source = node.layer->data_layer();
    if (source == nullptr) continue;
    const int64_t records = source->CountRecords(reads_keys);
    const int64_t batch = source->RecordsPerBatch();
    const std::string& name = node.spec.name();
    if (!data.layer.empty() && (records != data.records || batch != data.batch)) {
      data.difference =
          Join("layer '", name, "' reads ", records, " records in batches of ", batch,
               ", and layer '", data.layer, "' reads ", data.records, " in batches of ", data.batch,
               ", so there is no pass that reads all records of both exactly once");
      data.records = -1;
      return data;
    }
    data = {records, batch, name, ""};
  }
  return data;
}

std::string MisfitOfTest(const TestData& data, int64_t batches, const std::string& setting) {
  const int64_t read = batches * data.batch;
  if (data.records < 1 || data.batch < 1 || read == data.records) return "";
  const std::string what =
      Join(setting, " ", batches, " with batches of ", data.batch, " reads ", read,
           " records, and the data of layer '", data.layer, "' has ", data.records);
  const std::string cure =
      Join("; without ", setting, ", a test reads each record exactly once",
           data.records % data.batch == 0
               ? Join(", the same as with ", setting, " ", data.records / data.batch, "")
               : std::string());
  return Join(what,
              read > data.records ? ": some records count more often than others"
                                  : ": a test skips the others",
              cure);
}

TestNets::TestNets(const NetSpec& spec, const NetOptions& options, const Device& device,
                   ParamStore& params, int batches)
    : net_(std::make_unique<Net>(spec, options, device, params)), batches_(batches) {
  if (batches == 0) {
    MakeExact(spec, options, device, params);
  } else {
    data_ = TestDataOf(*net_, false);
    batch_ = data_.batch;
  }
}

void TestNets::MakeExact(const NetSpec& spec, const NetOptions& options, const Device& device,
                         ParamStore& params) {
  data_ = TestDataOf(*net_, true);
  if (data_.records < 1) {
    const std::string why =
        !data_.difference.empty() ? data_.difference
        : data_.layer.empty()
            ? "no layer of the test net reads records from files, so a test has no end"
            : Join("layer '", data_.layer,
                   "' draws an endless sequence of records, so a test has no end");
    throw Error(ErrorCode::kConfig, {spec.file}, why + "; give the number of batches (test_iter)");
  }
  batch_ = std::min(data_.batch, data_.records);
  if (batch_ < data_.batch) net_ = WithBatches(spec, batch_, options, device, params);
  if (data_.records / batch_ > std::numeric_limits<int>::max()) {
    throw Error(ErrorCode::kConfig, {spec.file},
                Join("a test of ", data_.records, " records in batches of ", batch_,
                     " has too many batches; give a larger batch_size"));
  }
  batches_ = static_cast<int>(data_.records / batch_);
  rest_records_ = data_.records % batch_;
  if (rest_records_ > 0) rest_ = WithBatches(spec, rest_records_, options, device, params);
  if (!rest_) return;
  SetTestShard(*net_, {.period = batches_, .skip_after = rest_records_});
  SetTestShard(*rest_, {.skip_before = data_.records - rest_records_});
}

std::unique_ptr<Net> TestNets::WithBatches(const NetSpec& spec, int64_t size, NetOptions options,
                                           const Device& device, ParamStore& params) {
  options.log = false;
  const auto fail = [&](const std::string& why) {
    const int64_t fits = FittingBatch(data_.records, data_.batch);
    throw Error(ErrorCode::kConfig, {spec.file},
                Join("one pass over the ", data_.records, " records of layer '", data_.layer,
                     "' in batches of ", data_.batch, " ends with a batch of ", size, ", and ", why,
                     ". Give a batch_size that divides ", data_.records, ", such as ", fits,
                     ", or the number of batches"));
  };
  if (WritesFiles(*net_)) fail("a layer of the test net writes only whole batches to its file");
  specs_.push_back(std::make_unique<NetSpec>(Resized(spec, data_.batch, size)));
  try {
    return std::make_unique<Net>(*specs_.back(), options, device, params);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kConfig) throw;
    fail(Join("the net cannot run with this batch size: ", error.what()));
  }
  return nullptr;
}

}  // namespace trainer

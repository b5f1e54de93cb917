#include "trainer/net/test_nets.h"

#include <glog/logging.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/config/batch_size.h"
#include "trainer/layers/data_layer.h"
#include "trainer/net/compile.h"
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

bool WritesFiles(const Graph& graph) {
  return std::ranges::any_of(graph.nodes,
                             [](const Node& node) { return node.signature.writes_files; });
}

// Returns the largest divisor of `records` that is not larger than `batch`.
int64_t FittingBatch(int64_t records, int64_t batch) {
  while (records % batch != 0) --batch;
  return batch;
}

TestBatches BatchesOf(const Graph& graph, const NetSpec& spec, int count) {
  TestBatches test{.data = TestDataOf(graph, count == 0), .count = count};
  const TestData& data = test.data;
  test.records = data.batch;
  if (count > 0) return test;
  if (data.records < 1) {
    const std::string why =
        !data.difference.empty() ? data.difference
        : data.layer.empty()
            ? "no layer of the test net reads records from files, so a test has no end"
            : Join("layer '", data.layer,
                   "' draws an endless sequence of records, so a test has no end");
    throw Error(ErrorCode::kConfig, {spec.file}, why + "; give the number of batches (test_iter)");
  }
  test.records = std::min(data.batch, data.records);
  if (data.records / test.records > std::numeric_limits<int>::max()) {
    throw Error(ErrorCode::kConfig, {spec.file},
                Join("a test of ", data.records, " records in batches of ", test.records,
                     " has too many batches; give a larger batch_size"));
  }
  test.count = static_cast<int>(data.records / test.records);
  test.rest = data.records % test.records;
  return test;
}

const Graph& GraphOf(const Net& net) { return net.graph(); }
const Graph& GraphOf(const Graph& graph) { return graph; }

// Makes the net for whole batches of a test with `make`, and for an exact pass the nets for smaller
// batches. T is a Net or a const Graph.
template <class T, class Make>
TestBatches MakeTest(const NetSpec& spec, NetOptions options, int count, const Make& make,
                     std::vector<std::unique_ptr<const NetSpec>>& specs, std::unique_ptr<T>& whole,
                     std::unique_ptr<T>& rest) {
  whole = make(spec, options);
  const TestBatches test = BatchesOf(GraphOf(*whole), spec, count);
  const TestData& data = test.data;
  options.log = false;
  const auto resized = [&](int64_t size) {
    const auto failure = [&](const std::string& why) {
      return Error(ErrorCode::kConfig, {spec.file},
                   Join("one pass over the ", data.records, " records of layer '", data.layer,
                        "' in batches of ", data.batch, " ends with a batch of ", size, ", and ",
                        why, ". Give a batch_size that divides ", data.records, ", such as ",
                        FittingBatch(data.records, data.batch), ", or the number of batches"));
    };
    if (WritesFiles(GraphOf(*whole))) {
      throw failure("a layer of the test net writes only whole batches to its file");
    }
    specs.push_back(std::make_unique<NetSpec>(Resized(spec, data.batch, size)));
    try {
      return make(*specs.back(), options);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kConfig) throw;
      throw failure(Join("the net cannot run with this batch size: ", error.what()));
    }
  };
  if (test.records < data.batch) whole = resized(test.records);
  if (test.rest > 0) rest = resized(test.rest);
  return test;
}

}  // namespace

TestData TestDataOf(const Graph& graph, bool reads_keys) {
  TestData data;
  for (const Node& node : graph.nodes) {
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

TestGraphs CompileTest(const NetSpec& spec, const NetOptions& options, const Device& device,
                       ParamStore& params, int batches) {
  TestGraphs graphs;
  const auto make = [&](const NetSpec& sized, const NetOptions& how) {
    return Compile(sized, how, device, params);
  };
  MakeTest(spec, options, batches, make, graphs.specs, graphs.whole, graphs.rest);
  return graphs;
}

TestNets::TestNets(const NetSpec& spec, const NetOptions& options, const Device& device,
                   ParamStore& params, int batches) {
  const auto make = [&](const NetSpec& sized, const NetOptions& how) {
    return std::make_unique<Net>(sized, how, device, params);
  };
  batches_ = MakeTest(spec, options, batches, make, specs_, net_, rest_);
  if (rest_ == nullptr) return;
  SetTestShard(*net_, {.period = batches_.count, .skip_after = batches_.rest});
  SetTestShard(*rest_, {.skip_before = batches_.data.records - batches_.rest});
}

}  // namespace trainer

// HDF5Data: rows of datasets in HDF5 files.

#include <glog/logging.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "trainer/base/error/error.h"
#include "trainer/base/file/file_error.h"
#include "trainer/base/random/permutation.h"
#include "trainer/base/text/text.h"
#include "trainer/config/named_file.h"
#include "trainer/input/source.h"
#include "trainer/storage/hdf5_list.h"
#include "trainer/storage/path_redirects.h"
#include "trainer/tensor/nchw_order.h"

namespace trainer {
namespace {

constexpr char kHdf5SourceParam[] = "hdf5_data_param";

// A record's index names its file and its row there; both are below 2^32.
constexpr int kRowBits = 32;
uint64_t IndexOf(size_t file, int64_t row) {
  return uint64_t{file} << kRowBits | static_cast<uint64_t>(row);
}
size_t FileOf(uint64_t index) { return index >> kRowBits; }
int64_t RowOf(uint64_t index) {
  return static_cast<int64_t>(index & ((uint64_t{1} << kRowBits) - 1));
}

int64_t Product(const std::vector<int64_t>& dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

// Reads consecutive rows of a file that are consecutive in the batch in one call.
class RowDecoder final : public Decoder {
 public:
  explicit RowDecoder(const Hdf5List& files) : files_(files) {}

  void Decode(std::span<const Record> records, Batch* batch) override {
    for (size_t begin = 0, end = 0; begin < records.size(); begin = end) {
      const auto follows = [&](size_t i) {
        return records[i].index == records[begin].index + (i - begin) &&
               records[i].batch_index ==
                   records[begin].batch_index + static_cast<int64_t>(i - begin) &&
               FileOf(records[i].index) == FileOf(records[begin].index);
      };
      for (end = begin + 1; end < records.size() && follows(end);) ++end;
      ReadRows(records[begin], static_cast<int64_t>(end - begin), batch);
    }
  }

 private:
  void ReadRows(const Record& first, int64_t rows, Batch* batch) {
    Open(FileOf(first.index));
    for (size_t i = 0; i < arrays_.size(); ++i) {
      const std::vector<int64_t>& row = files_.row_dims(i);
      const auto count = static_cast<size_t>(rows * Product(row));
      float* to = batch->output(static_cast<int>(i)).data() + first.batch_index * Product(row);
      if (row.size() != 3) {
        arrays_[i].ReadRows(RowOf(first.index), rows, {to, count});
        continue;
      }
      planar_.resize(std::max(planar_.size(), count));
      arrays_[i].ReadRows(RowOf(first.index), rows, {planar_.data(), count});
      TransposeMatrices({planar_.data(), count}, {to, count}, row[0], row[1] * row[2]);
    }
  }

  void Open(size_t file) {
    if (open_file_ == file) return;
    arrays_.clear();
    open_file_ = SIZE_MAX;
    reader_ =
        OpenAgain([&] { return std::make_unique<Hdf5Reader>(ResolvedPath(files_.path(file))); });
    arrays_ = files_.ArraysOf(*reader_, file);
    open_file_ = file;
  }

  const Hdf5List& files_;
  size_t open_file_ = SIZE_MAX;
  std::unique_ptr<Hdf5Reader> reader_;
  std::vector<Hdf5Array> arrays_;
  std::vector<float> planar_;  // images (C, H, W)
};

// The rows of all files, or a new order of the files, and of the rows of each, per epoch.
class RowSampler final : public RecordSampler {
 public:
  RowSampler(Hdf5List files, bool shuffle, const PhiloxKey& key)
      : files_(std::move(files)), shuffle_(shuffle), key_(key) {}

  const std::string& path() const override { return files_.list(); }
  const Hdf5List& files() const { return files_; }

  void Get(Record* record) override {
    BeginOnce();
    record->index = Current();
  }
  bool stable() const override { return true; }  // records are indices

  uint64_t Skip(uint64_t count) override {
    BeginOnce();
    uint64_t ended = 0;
    row_ += static_cast<int64_t>(count);
    if (row_ < files_.rows(File())) return 0;
    while (row_ >= files_.rows(File())) {  // files may be empty
      row_ -= files_.rows(File());
      if (++file_ < file_order_.size()) continue;
      ++epoch_;
      ++ended;
      OrderFiles();
    }
    OrderRows();
    return ended;
  }

  int64_t CountRecords(bool) override { return files_.total(); }

  // The number of rows identifies the files; the record's number defines the row.
  std::string Key() const override { return Join(files_.total()); }
  Position Start() const override { return {.key = Key()}; }

  void Seek(const Position& position) override {
    if (position.key != Key()) {
      throw Error(ErrorCode::kBadSnapshot, {path()},
                  Join("the files of this list have ", files_.total(), " rows now, but had ",
                       EscapeControl(position.key),
                       " when the snapshot was made; use the files of that run"));
    }
    const auto total = static_cast<uint64_t>(files_.total());
    if (position.record / total != position.epoch) {
      throw Error(ErrorCode::kBadSnapshot, {path()},
                  "the snapshot's position in these files is invalid; use another snapshot");
    }
    epoch_ = position.epoch;
    row_ = static_cast<int64_t>(position.record % total);
    file_order_.clear();
  }

  std::string Describe() override {
    return Join("row ", RowOf(Current()), " of ", EscapeControl(files_.path(FileOf(Current()))));
  }

 private:
  size_t File() const { return file_order_[file_]; }
  uint64_t Current() const {
    return IndexOf(File(), shuffle_ ? row_order_[static_cast<size_t>(row_)] : row_);
  }

  // Makes the orders of the epoch when they are first needed: row_ counts its rows until then.
  void BeginOnce() {
    if (!file_order_.empty()) return;
    OrderFiles();
    while (row_ >= files_.rows(File())) {
      row_ -= files_.rows(File());
      ++file_;
    }
    OrderRows();
  }

  void OrderFiles() {
    file_ = 0;
    Order(0, files_.count(), &file_order_);
  }
  void OrderRows() {
    if (shuffle_) Order(File() + 1, static_cast<size_t>(files_.rows(File())), &row_order_);
  }
  // `stream` makes the orders of one epoch different from each other.
  void Order(uint64_t stream, size_t count, std::vector<uint32_t>* order) const {
    if (shuffle_) {
      return Permute(key_, static_cast<uint32_t>(epoch_), (stream << 32) + 1, count, order);
    }
    order->resize(count);
    std::iota(order->begin(), order->end(), 0u);
  }

  const Hdf5List files_;
  bool shuffle_;
  PhiloxKey key_;
  uint64_t epoch_ = 0;
  std::vector<uint32_t> file_order_, row_order_;  // row_order_ is empty unless shuffled
  size_t file_ = 0;                               // in file_order_
  int64_t row_ = 0;                               // in that file's order
};

class RowDecoders final : public DecoderFactory {
 public:
  explicit RowDecoders(const Hdf5List& files) : files_(files) {}

  std::vector<Shape> Shapes(int64_t batch_size, bool) const override {
    std::vector<Shape> shapes;
    for (size_t i = 0; i < files_.datasets().size(); ++i) {
      std::vector<int64_t> dims = files_.row_dims(i);
      dims.insert(dims.begin(), batch_size);
      shapes.emplace_back(std::span<const int64_t>(dims));
    }
    return shapes;
  }

  std::unique_ptr<Decoder> Make() const override { return std::make_unique<RowDecoder>(files_); }

 private:
  const Hdf5List& files_;
};

BatchQueueOptions ReadHdf5Options(const LayerSpec& layer, const InputEnv& env) {
  const caffe::HDF5DataParameter& param = layer.proto().hdf5_data_param();
  if (layer.proto().has_transform_param()) {
    layer.Fail("transform_param",
               "rows of HDF5 files are not transformed; remove transform_param, and store the "
               "values in the form that the net needs");
  }
  if (param.source().empty()) {
    layer.FailIn(kHdf5SourceParam, "source",
                 "source is missing; give the path of the list of HDF5 files");
  }
  LayerSpec without_data_param = layer;  // as Caffe ignores it here
  without_data_param.mutable_proto().clear_data_param();
  return QueueOptionsOf(without_data_param, kHdf5SourceParam, param.batch_size(), env);
}

}  // namespace

std::unique_ptr<BatchQueue> OpenHdf5Rows(const LayerSpec& layer, const InputEnv& env) {
  const BatchQueueOptions options = ReadHdf5Options(layer, env);
  const caffe::HDF5DataParameter& param = layer.proto().hdf5_data_param();
  std::vector<std::string> tops(layer.proto().top().begin(), layer.proto().top().end());
  Hdf5List files =
      ReadNamedFile(layer, kHdf5SourceParam, "source", param.source(), [&](const auto& list) {
        LOG(INFO) << "Loading list of HDF5 filenames from: " << list;
        return Hdf5List(list, tops);
      });
  LOG(INFO) << "Number of HDF5 files: " << files.count();
  files.LimitRows(layer.proto().data_param().limit());
  auto sampler = std::make_unique<RowSampler>(std::move(files), param.shuffle(), env.key);
  auto decoders = std::make_unique<RowDecoders>(sampler->files());
  return std::make_unique<BatchQueue>(RecordSource{std::move(sampler), std::move(decoders)},
                                      options);
}

}  // namespace trainer

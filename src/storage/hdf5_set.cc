// Reads and writes HDF5 files as sets: the datasets data and label, as HDF5Data reads them.

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "datum.pb.h"
#include "record_kinds.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/hdf5/appender.h"
#include "trainer/hdf5/reader.h"
#include "trainer/storage/cursor.h"
#include "trainer/storage/datum.h"
#include "trainer/storage/hdf5_list.h"

namespace trainer {
namespace {

constexpr int64_t kRowsAtOnce = 64;
constexpr size_t kBytesAtOnce = size_t{4} << 20;

// One file.
class Hdf5Rows {
 public:
  explicit Hdf5Rows(const std::string& path) : reader_(path), data_(reader_.Array("data")) {
    const std::vector<int64_t>& dims = data_.dims();
    if (dims.empty() || dims.size() > 4) {
      throw Error(ErrorCode::kData, {path},
                  Join("dataset 'data' has ", dims.size(), " axes; it must have 1 to 4"));
    }
    rows_ = dims[0];
    std::vector<int64_t> row(dims.begin() + 1, dims.end());
    // (D) is D channels of one pixel, (H, W) one channel.
    if (row.size() == 2) row.insert(row.begin(), 1);
    row.resize(3, 1);
    datum_.set_channels(static_cast<int32_t>(row[0]));
    datum_.set_height(static_cast<int32_t>(row[1]));
    datum_.set_width(static_cast<int32_t>(row[2]));
    width_ = row[0] * row[1] * row[2];
    if (!reader_.Has("label")) return;
    const Hdf5Array labels = reader_.Array("label");
    if (labels.count() != rows_) {
      throw Error(ErrorCode::kData, {path},
                  Join("dataset 'label' has ", labels.count(), " numbers for the ", rows_,
                       " rows of 'data'; each row needs one label"));
    }
    labels_.resize(static_cast<size_t>(rows_));
    labels.Read(std::span<float>(labels_));
  }

  int64_t rows() const { return rows_; }

  std::string Datum(int64_t row) {
    if (row < first_ || row >= first_ + held_) Fetch(row);
    const std::span<const float> values = std::span(values_).subspan(
        static_cast<size_t>((row - first_) * width_), static_cast<size_t>(width_));
    datum_.clear_data();
    datum_.clear_float_data();
    const bool bytes = !data_.is_float() &&
                       std::ranges::all_of(values, [](float v) { return v >= 0 && v <= 255; });
    if (bytes) {
      std::string& data = *datum_.mutable_data();
      for (const float value : values) data += static_cast<char>(static_cast<uint8_t>(value));
    } else {
      datum_.mutable_float_data()->Add(values.begin(), values.end());
    }
    if (!labels_.empty()) datum_.set_label(Label(row));
    return datum_.SerializeAsString();
  }

 private:
  void Fetch(int64_t row) {
    held_ = std::min(kRowsAtOnce, rows_ - row);
    values_.resize(static_cast<size_t>(held_ * width_));
    data_.ReadRows(row, held_, values_);
    first_ = row;
  }

  int32_t Label(int64_t row) const {
    const float label = labels_[static_cast<size_t>(row)];
    if (std::floor(label) == label && std::fabs(label) < 0x1p31f)
      return static_cast<int32_t>(label);
    throw Error(ErrorCode::kData, {reader_.path()},
                Join("row ", row, " has the label ", label,
                     ", which is not an integer; labels in other kinds of sets must be integers"));
  }

  Hdf5Reader reader_;
  Hdf5Array data_;
  int64_t rows_ = 0, width_ = 0, first_ = 0, held_ = 0;
  std::vector<float> values_, labels_;
  caffe::Datum datum_;
};

class Hdf5SetReader final : public RecordReader {
 public:
  explicit Hdf5SetReader(const std::string& path) {
    if (!path.ends_with(".txt")) {
      files_.push_back(path);
    } else {
      for (const ListedHdf5& file : ReadHdf5List(path)) files_.push_back(file.path);
    }
    for (const std::string& file : files_) count_ += Hdf5Rows(file).rows();
  }

  bool Next(StoredRecord* record) override {
    while (!open_ || row_ == open_->rows()) {
      if (next_ == files_.size()) return false;
      open_.emplace(files_[next_++]);
      row_ = 0;
    }
    record->key = NumberedKey(number_++);
    record->value = open_->Datum(row_++);
    return true;
  }
  int64_t Count() const override { return count_; }

 private:
  std::vector<std::string> files_;
  size_t next_ = 0;
  std::optional<Hdf5Rows> open_;
  int64_t row_ = 0, number_ = 0, count_ = 0;
};

// Bytes stay bytes, as records of databases are, and floats floats.
class Hdf5SetWriter final : public RecordWriter {
 public:
  explicit Hdf5SetWriter(const std::string& path)
      : path_(path), list_(path.substr(0, path.rfind('.')) + ".txt"), temp_(TempPathFor(path)) {
    RefuseExisting(path_);
    RefuseExisting(list_);
    file_.emplace(temp_, path_);
  }
  ~Hdf5SetWriter() override {
    if (!file_) return;
    file_.reset();
    FileOps::Posix().Unlink(temp_);
  }

  void Prepare(StoredRecord* record) const override {
    DatumParser parser;
    const DatumView& view = parser.Parse(path_, record->key, record->value);
    caffe::Datum datum;
    datum.set_channels(view.channels);
    datum.set_height(view.height);
    datum.set_width(view.width);
    if (view.has_label) datum.set_label(view.label);
    if (view.bytes.empty()) {
      datum.mutable_float_data()->Add(view.floats.begin(), view.floats.end());
    } else {
      datum.set_data(view.bytes.data(), view.bytes.size());
    }
    datum.SerializeToString(&record->value);
  }

  void Put(const StoredRecord& record) override {
    caffe::Datum datum;
    datum.ParseFromString(record.value);
    Check(record.key, datum);
    bytes_ += datum.data();
    floats_.insert(floats_.end(), datum.float_data().begin(), datum.float_data().end());
    if (datum.has_label()) labels_.push_back(static_cast<float>(datum.label()));
    ++rows_;
    if (bytes_.size() + floats_.size() * sizeof(float) >= kBytesAtOnce) Write();
  }

  void Finish() override {
    Write();
    file_->Close();
    RefuseExisting(path_);  // made meanwhile
    RefuseExisting(list_);
    PlaceWhole(temp_, path_);
    file_.reset();
    // The list that HDF5Data's source names.
    WriteWhole(list_, FileNameOf(path_) + "\n");
  }

 private:
  static std::string FormOf(const caffe::Datum& datum) {
    return Join(datum.channels(), "x", datum.height(), "x", datum.width(),
                datum.data().empty() ? " floats" : " bytes",
                datum.has_label() ? " with a label" : " without a label");
  }

  void Check(const std::string& key, const caffe::Datum& datum) {
    const std::string form = FormOf(datum);
    if (form_.empty()) {
      form_ = form;
      first_key_ = key;
      dims_ = {0, datum.channels(), datum.height(), datum.width()};
    }
    if (form == form_) return;
    throw Error(
        ErrorCode::kData, {path_},
        Join("record ", QuoteKey(key), " is ", form, ", but record ", QuoteKey(first_key_), " is ",
             form_,
             "; all rows of an HDF5 file must have the same shape and type: resize the images"));
  }

  void Write() {
    if (rows_ == 0) return;
    dims_[0] = rows_;
    const int64_t count[] = {rows_};
    if (floats_.empty()) {
      file_->Append("data", dims_,
                    {reinterpret_cast<const uint8_t*>(bytes_.data()), bytes_.size()});
    } else {
      file_->Append("data", dims_, std::span<const float>(floats_));
    }
    if (!labels_.empty()) file_->Append("label", count, std::span<const float>(labels_));
    bytes_.clear();
    floats_.clear();
    labels_.clear();
    rows_ = 0;
  }

  std::string path_, list_, temp_;
  std::optional<Hdf5Appender> file_;
  std::string form_, first_key_;  // of the first record
  std::vector<int64_t> dims_;
  std::string bytes_;
  std::vector<float> floats_, labels_;
  int64_t rows_ = 0;
};

}  // namespace

std::unique_ptr<RecordReader> OpenHdf5Records(const std::string& path) {
  return std::make_unique<Hdf5SetReader>(path);
}

std::unique_ptr<RecordWriter> MakeHdf5Records(const std::string& path) {
  return std::make_unique<Hdf5SetWriter>(path);
}

}  // namespace trainer

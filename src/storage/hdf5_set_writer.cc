#include <vector>

#include "datum.pb.h"
#include "hdf5_set.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/storage/array_file.h"
#include "trainer/storage/array_writer.h"
#include "trainer/storage/datum.h"
#include "trainer/storage/hdf5_list.h"

namespace trainer {
namespace {

constexpr size_t kBytesAtOnce = size_t{4} << 20;

// Bytes stay bytes, as records of databases are, and floats floats.
class Hdf5SetWriter final : public RecordWriter {
 public:
  Hdf5SetWriter(const std::string& path, bool are_rows)
      : path_(path), are_rows_(are_rows), list_(IsNumpyPath(path) ? "" : Hdf5ListPath(path)) {
    RefuseNames();
    file_ = OpenArrayWriter(path_);
  }

  void Prepare(StoredRecord* record) const override {
    DatumParser parser;
    const DatumView& view = parser.Parse(path_, record->key, record->value);
    caffe::Datum datum = EmptyDatum(view.channels, view.height, view.width);
    SetLabels(view, &datum);
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
    labels_.insert(labels_.end(), datum.labels().begin(), datum.labels().end());
    ++rows_;
    if (bytes_.size() + floats_.size() * sizeof(float) >= kBytesAtOnce) Write();
  }

  void Finish() override {
    Write();
    RefuseNames();  // made meanwhile
    file_->Finish();
    // The list that HDF5Data's source names.
    if (!list_.empty()) WriteWhole(list_, FileNameOf(path_) + "\n");
  }

 private:
  static std::string FormOf(const caffe::Datum& datum) {
    return Join(datum.channels(), "x", datum.height(), "x", datum.width(),
                datum.data().empty() ? " floats" : " bytes", LabelsText(datum));
  }

  // A label that is an integer and one that is not are the same form.
  static std::string LabelsText(const caffe::Datum& datum) {
    if (datum.labels_size() > 1) return Join(" with ", datum.labels_size(), " labels");
    return datum.has_label() || datum.labels_size() == 1 ? " with a label" : " without a label";
  }

  void Check(const std::string& key, const caffe::Datum& datum) {
    const std::string form = FormOf(datum);
    if (form_.empty()) {
      form_ = form;
      first_key_ = key;
      dims_ = {0, datum.channels()};
      if (!are_rows_) dims_.insert(dims_.end(), {datum.height(), datum.width()});
    }
    if (form == form_) return;
    throw Error(
        ErrorCode::kData, {path_},
        Join("record ", QuoteKey(key), " is ", form, ", but record ", QuoteKey(first_key_), " is ",
             form_,
             "; all rows of such a file must have the same shape and type: resize the images"));
  }

  void RefuseNames() const {
    RefuseExisting(path_);
    if (!list_.empty()) RefuseExisting(list_);
  }

  void Write() {
    if (rows_ == 0) return;
    dims_[0] = rows_;
    const auto row_labels = static_cast<int64_t>(labels_.size()) / rows_;
    std::vector<int64_t> label_dims = {rows_};
    if (row_labels > 1) label_dims.push_back(row_labels);
    if (floats_.empty()) {
      file_->Append("data", dims_,
                    {reinterpret_cast<const uint8_t*>(bytes_.data()), bytes_.size()});
    } else {
      file_->Append("data", dims_, std::span<const float>(floats_));
    }
    if (!labels_.empty()) file_->Append("label", label_dims, std::span<const float>(labels_));
    bytes_.clear();
    floats_.clear();
    labels_.clear();
    rows_ = 0;
  }

  const std::string path_;
  const bool are_rows_;
  const std::string list_;
  std::unique_ptr<ArrayWriter> file_;
  std::string form_, first_key_;  // of the first record
  std::vector<int64_t> dims_;
  std::string bytes_;
  std::vector<float> floats_, labels_;
  int64_t rows_ = 0;
};

}  // namespace

std::unique_ptr<RecordWriter> CreateHdf5Set(const std::string& path, bool are_rows) {
  return std::make_unique<Hdf5SetWriter>(path, are_rows);
}

}  // namespace trainer

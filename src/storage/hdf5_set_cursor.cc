#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "datum.pb.h"
#include "hdf5_set.h"
#include "indexed_cursor.h"
#include "trainer/base/text/parse_number.h"
#include "trainer/base/text/text.h"
#include "trainer/storage/array_file.h"
#include "trainer/storage/datum.h"
#include "trainer/storage/hdf5_list.h"

namespace trainer {
namespace {

constexpr int64_t kRowsAtOnce = 64;

class Hdf5Rows {
 public:
  explicit Hdf5Rows(const std::string& path)
      : file_(OpenArrayFile(path)), data_(file_->Array("data")) {
    const std::vector<int64_t>& dims = data_->dims();
    if (dims.empty() || dims.size() > 4) {
      throw Error(ErrorCode::kData, {path},
                  Join("dataset 'data' has ", dims.size(), " axes; it must have 1 to 4"));
    }
    rows_ = dims[0];
    std::vector<int64_t> row(dims.begin() + 1, dims.end());
    // (D) is D channels of one pixel, (H, W) one channel.
    if (row.size() == 2) row.insert(row.begin(), 1);
    row.resize(3, 1);
    datum_ =
        EmptyDatum(static_cast<int>(row[0]), static_cast<int>(row[1]), static_cast<int>(row[2]));
    width_ = row[0] * row[1] * row[2];
    if (!file_->Has("label")) return;
    const std::unique_ptr<StoredArray> labels = file_->Array("label");
    const std::vector<int64_t>& label_dims = labels->dims();
    const bool several = !label_dims.empty() && label_dims[0] == rows_ && labels->Count() > 0;
    if (label_dims.empty() || (labels->Count() != rows_ && !several)) {
      throw Error(ErrorCode::kData, {path},
                  Join("dataset 'label' has ", labels->Count(), " numbers for the ", rows_,
                       " rows of 'data'; each row needs one label, or as many as the others"));
    }
    labels_.resize(static_cast<size_t>(labels->Count()));
    labels->ReadRows(0, label_dims[0], labels_);
  }

  int64_t rows() const { return rows_; }

  std::string Datum(int64_t row) {
    if (row < first_ || row >= first_ + held_) Fetch(row);
    const std::span<const float> values = std::span(values_).subspan(
        static_cast<size_t>((row - first_) * width_), static_cast<size_t>(width_));
    datum_.clear_data();
    datum_.clear_float_data();
    const bool bytes = data_->may_be_bytes() &&
                       std::ranges::all_of(values, [](float v) { return v >= 0 && v <= 255; });
    if (bytes) {
      std::string& data = *datum_.mutable_data();
      for (const float value : values) data += static_cast<char>(static_cast<uint8_t>(value));
    } else {
      datum_.mutable_float_data()->Add(values.begin(), values.end());
    }
    const auto count = labels_.size() / static_cast<size_t>(rows_);
    SetLabels(std::span(labels_).subspan(static_cast<size_t>(row) * count, count), &datum_);
    return datum_.SerializeAsString();
  }

 private:
  void Fetch(int64_t row) {
    held_ = std::min(kRowsAtOnce, rows_ - row);
    values_.resize(static_cast<size_t>(held_ * width_));
    data_->ReadRows(row, held_, values_);
    first_ = row;
  }

  std::unique_ptr<ArrayFile> file_;
  std::unique_ptr<StoredArray> data_;
  int64_t rows_ = 0, width_ = 0, first_ = 0, held_ = 0;
  std::vector<float> values_, labels_;
  caffe::Datum datum_;
};

// Keys are the numbers of the rows, counted over all files.
class Hdf5Cursor final : public IndexedCursor {
 public:
  explicit Hdf5Cursor(const std::string& path) : IndexedCursor(path) {
    if (!path.ends_with(".txt")) {
      files_.push_back(path);
    } else {
      for (const ListedHdf5& file : ReadHdf5List(path)) files_.push_back(file.path);
    }
    for (const std::string& file : files_) {
      begins_.push_back(count_);
      count_ += Hdf5Rows(file).rows();
    }
    if (count_ > 0) SeekFirst();
  }

  int64_t Count() const override { return count_; }

 private:
  std::string KeyOf(int64_t row) const override { return NumberedKey(row); }
  int64_t Find(std::string_view key) const override {
    const int64_t row = ParseNumber<int64_t>(key).value_or(-1);
    return row >= 0 && row < count_ && NumberedKey(row) == key ? row : -1;
  }

  void ReadValue(int64_t row, std::string* value) const override {
    const auto next = std::ranges::upper_bound(begins_, row);
    const auto file = static_cast<size_t>(next - begins_.begin()) - 1;
    if (!open_ || file != open_file_) open_.emplace(files_[file]);
    open_file_ = file;
    *value = open_->Datum(row - begins_[file]);
  }

  std::vector<std::string> files_;
  std::vector<int64_t> begins_;  // the first row of each file
  int64_t count_ = 0;
  mutable std::optional<Hdf5Rows> open_;
  mutable size_t open_file_ = 0;
};

}  // namespace

std::unique_ptr<Cursor> OpenHdf5(const std::string& path) {
  return std::make_unique<Hdf5Cursor>(path);
}

}  // namespace trainer

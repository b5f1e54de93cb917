#include "trainer/data/hdf5_rows.h"

#include <glog/logging.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <sstream>

#include "trainer/base/file.h"
#include "trainer/base/text.h"
#include "trainer/config/blob.h"
#include "trainer/config/prototxt.h"
#include "trainer/tensor/plain_order.h"

namespace trainer {
namespace {

constexpr uint64_t kMaxListBytes = 1 << 28;

// A random order of 0 .. count-1, each as likely: Fisher and Yates' exchange. `stream` tells apart
// the orders of one epoch.
void MakeOrder(const PhiloxKey& key, uint64_t epoch, uint64_t stream, size_t count,
               std::vector<uint32_t>* order) {
  order->resize(count);
  std::iota(order->begin(), order->end(), 0);
  for (size_t left = count; left > 1; --left) {
    const uint64_t word = PhiloxWord(key, static_cast<uint32_t>(epoch), (stream << 32) + left);
    std::swap((*order)[left - 1], (*order)[word * left >> 32]);
  }
}

int64_t Product(const std::vector<int64_t>& dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

}  // namespace

std::vector<ListedHdf5> ReadHdf5List(const std::string& list) {
  std::istringstream lines(ReadFile(list, kMaxListBytes));
  std::vector<ListedHdf5> files;
  std::string line, path;
  for (int number = 1; std::getline(lines, line); ++number) {
    for (std::istringstream words(line); words >> path;) {
      files.push_back({ResolvePath(path, list), number});
    }
  }
  if (!files.empty()) return files;
  throw Error(ErrorCode::kData, {list},
              "this list of HDF5 files is empty; write one path in each line");
}

Hdf5Rows::Hdf5Rows(Hdf5RowsOptions options)
    : options_(std::move(options)),
      row_dims_(options_.datasets.size()),
      ahead_(
          options_.depth, [this] { return MakeBatch(); },
          [this](RowBatch& batch) { Fill(batch); }) {
  for (const ListedHdf5& file : ReadHdf5List(options_.list)) {
    files_.push_back({file.path, {options_.list, file.line}, 0});
  }
  for (File& file : files_) Inspect(&file);
  if (total_ == 0) {
    throw Error(ErrorCode::kData, {options_.list}, "the files of this list hold no rows at all");
  }
  at_.key = position_.key = Join(total_);
  wanted_.reserve(static_cast<size_t>(options_.batch_size));
}

Hdf5Rows::~Hdf5Rows() = default;

// Takes the rows' shapes from the first file and compares the others with it.
void Hdf5Rows::Inspect(File* file) try {
  const Hdf5Reader reader(file->path);
  const bool first = file == &files_.front();
  for (size_t i = 0; i < options_.datasets.size(); ++i) {
    const Hdf5Array array = reader.Array(options_.datasets[i]);
    if (array.dims().empty()) {
      throw Error(ErrorCode::kData, {file->path},
                  Join("'", array.name(), "' is a single number; a dataset of rows needs an axis"));
    }
    const std::vector<int64_t> row(array.dims().begin() + 1, array.dims().end());
    if (first) {
      row_dims_[i] = row;
      LOG_IF(INFO, i == 0) << "Datatype class: "
                           << (array.is_float() ? "H5T_FLOAT" : "H5T_INTEGER");
    }
    CheckRow(array, i, file);
  }
  total_ += file->rows;
} catch (const Error& error) {
  throw Error(error.code(), file->listed, error.what());
}

void Hdf5Rows::CheckRow(const Hdf5Array& array, size_t output, File* file) {
  const auto fail = [&](const auto&... why) {
    throw Error(ErrorCode::kData, {file->path},
                Join("'", EscapeControl(array.name()), "' ", why...));
  };
  const int64_t rows = array.dims()[0];
  if (output == 0) file->rows = rows;
  if (rows != file->rows) {
    fail("has ", rows, " rows and '", options_.datasets[0], "' has ", file->rows,
         "; all datasets of a file need the same number");
  }
  if (rows > std::numeric_limits<uint32_t>::max()) {
    fail("has ", rows, " rows; one file may have 2^32 - 1: split it");
  }
  const std::vector<int64_t> row(array.dims().begin() + 1, array.dims().end());
  if (row != row_dims_[output]) {
    fail("has rows of shape ", ShapeText(row), ", but the first file has ",
         ShapeText(row_dims_[output]), "; one net needs one shape");
  }
}

Shape Hdf5Rows::shape(int i) const {
  std::vector<int64_t> dims = row_dims_[static_cast<size_t>(i)];
  dims.insert(dims.begin(), options_.batch_size);
  return Shape(dims);
}

void Hdf5Rows::Restore(const Position& position) {
  if (ahead_.started()) throw Error(ErrorCode::kInternal, "a running data source cannot be moved");
  if (position.key != Join(total_)) {
    throw Error(
        ErrorCode::kBadSnapshot, {options_.list},
        Join("the files of this list have ", total_, " rows, and had ", EscapeControl(position.key),
             " when the snapshot was made; use the files it was made with"));
  }
  if (position.record / static_cast<uint64_t>(total_) != position.epoch) {
    throw Error(ErrorCode::kBadSnapshot, {options_.list},
                "the snapshot's place in these files contradicts itself; use another snapshot");
  }
  at_ = position_ = position;
}

const RowBatch& Hdf5Rows::Next() {
  before_ = position_;
  const RowBatch& batch = ahead_.Next();
  position_ = batch.next;
  return batch;
}

std::string Hdf5Rows::NameOfItem(int64_t item) {
  ahead_.Stop();
  at_ = before_;
  BeginEpoch(static_cast<int64_t>(at_.record - at_.epoch * static_cast<uint64_t>(total_)));
  for (SkipOthers(); item > 0; --item) {
    Advance();
    SkipOthers();
  }
  return Join("row ", Here().row, " of ", EscapeControl(files_[Here().file].path));
}

RowBatch Hdf5Rows::MakeBatch() const {
  RowBatch batch;
  for (const std::vector<int64_t>& row : row_dims_) {
    batch.outputs.emplace_back(static_cast<size_t>(options_.batch_size * Product(row)));
  }
  return batch;
}

void Hdf5Rows::Fill(RowBatch& batch) {
  const auto total = static_cast<uint64_t>(total_);
  if (file_order_.empty()) BeginEpoch(static_cast<int64_t>(at_.record - at_.epoch * total));
  wanted_.clear();
  while (wanted_.size() < static_cast<size_t>(options_.batch_size)) {
    SkipOthers();
    wanted_.push_back(Here());
    Advance();
  }
  for (size_t begin = 0, end = 0; begin < wanted_.size(); begin = end) {
    const Row first = wanted_[begin];
    const auto follows = [&](size_t i) {
      return wanted_[i].file == first.file &&
             wanted_[i].row == first.row + static_cast<int64_t>(i - begin);
    };
    for (end = begin + 1; end < wanted_.size() && follows(end);) ++end;
    ReadRun(first, static_cast<int64_t>(end - begin), static_cast<int64_t>(begin), batch);
  }
  batch.next = at_;
}

// Makes the order of at_.epoch and goes to its row number `skipped`.
void Hdf5Rows::BeginEpoch(int64_t skipped) {
  MakeOrder(options_.key, at_.epoch, 0, files_.size(), &file_order_);
  if (!options_.shuffle) std::iota(file_order_.begin(), file_order_.end(), 0);
  place_ = 0;
  while (skipped >= files_[file_order_[place_]].rows) skipped -= files_[file_order_[place_++]].rows;
  BeginFile();
  row_ = skipped;
}

void Hdf5Rows::BeginFile() {
  row_ = 0;
  const size_t file = file_order_[place_];
  if (!options_.shuffle) return;
  MakeOrder(options_.key, at_.epoch, file + 1, static_cast<size_t>(files_[file].rows), &row_order_);
}

Hdf5Rows::Row Hdf5Rows::Here() const {
  const int64_t row = options_.shuffle ? row_order_[static_cast<size_t>(row_)] : row_;
  return {file_order_[place_], row};
}

void Hdf5Rows::SkipOthers() {
  const auto count = static_cast<uint64_t>(options_.replica.count);
  const auto rank = static_cast<uint64_t>(options_.replica.rank);
  while (at_.record % count != rank) Advance();
}

void Hdf5Rows::Advance() {
  ++at_.record;
  if (++row_ < files_[file_order_[place_]].rows) return;
  do {  // files may be empty
    ++place_;
  } while (place_ < files_.size() && files_[file_order_[place_]].rows == 0);
  if (place_ < files_.size()) return BeginFile();
  ++at_.epoch;
  BeginEpoch(0);
  LOG(INFO) << "Restarting data prefetching from start.";
}

void Hdf5Rows::Open(size_t index) {
  if (open_file_ == index) return;
  File& file = files_[index];
  arrays_.clear();
  open_file_ = SIZE_MAX;
  reader_ = std::make_unique<Hdf5Reader>(file.path);
  for (size_t i = 0; i < options_.datasets.size(); ++i) {
    arrays_.push_back(reader_->Array(options_.datasets[i]));
    const int64_t rows = file.rows;
    if (arrays_.back().dims().empty() || arrays_.back().dims()[0] != rows) {
      throw Error(ErrorCode::kData, {file.path}, "the file was changed while it was in use");
    }
    CheckRow(arrays_.back(), i, &file);
  }
  open_file_ = index;
}

void Hdf5Rows::ReadRun(const Row& first, int64_t rows, int64_t at, RowBatch& batch) {
  Open(first.file);
  for (size_t i = 0; i < arrays_.size(); ++i) {
    const std::vector<int64_t>& row = row_dims_[i];
    const auto count = static_cast<size_t>(rows * Product(row));
    float* to = batch.outputs[i].data() + at * Product(row);
    if (row.size() != 3) {
      arrays_[i].ReadRows(first.row, rows, {to, count});
      continue;
    }
    plain_.resize(std::max(plain_.size(), count));
    arrays_[i].ReadRows(first.row, rows, {plain_.data(), count});
    TransposeMatrices({plain_.data(), count}, {to, count}, row[0], row[1] * row[2]);
  }
}

}  // namespace trainer

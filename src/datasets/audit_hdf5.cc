#include "audit_hdf5.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "audit_parts.h"
#include "trainer/base/text/text.h"
#include "trainer/hdf5/reader.h"
#include "trainer/storage/hdf5_list.h"

namespace trainer {
namespace {

constexpr int64_t kMostLabels = int64_t{1} << 24;  // of one dataset, to be read at once

class Hdf5Audit {
 public:
  Hdf5Audit(const LayerSpec& layer, std::span<const int> label_tops, const AuditLimits& limits,
            DataAudit* audit)
      : layer_(layer), label_tops_(label_tops), limits_(limits), audit_(*audit), labels_(audit) {}

  void Run() {
    const std::vector<ListedHdf5> files = ReadHdf5List(audit_.source);
    const std::vector<size_t> chosen = Spread(files.size(), static_cast<size_t>(limits_.pictures));
    whole_ = chosen.size() == files.size();
    const int64_t limit = layer_.proto().data_param().limit();
    if (limit > 0) rows_left_ = limit;
    for (size_t i = 0; i < files.size(); ++i) {
      const Hdf5Reader reader(files[i].path);
      const Hdf5Array first = reader.Array(layer_.proto().top(0));
      const int64_t rows = first.dims().empty() ? 0 : first.dims()[0];
      audit_.records += rows;
      rows_ = std::min(rows, rows_left_);
      rows_left_ -= rows_;
      if (rows_ == 0) continue;
      if (!std::ranges::binary_search(chosen, i)) continue;
      for (int top = 0; top < layer_.proto().top_size(); ++top) {
        const Hdf5Array array = reader.Array(layer_.proto().top(top));
        if (array.dims().empty() || array.dims()[0] == 0) continue;
        const bool is_label = std::ranges::find(label_tops_, top) != label_tops_.end();
        is_label ? CountLabels(array) : CheckEnds(array);
      }
    }
    if (whole_ && !label_tops_.empty()) {
      labels_.EndOfAll(layer_.proto().hdf5_data_param().shuffle());
    }
  }

 private:
  // Reads all values of a dataset of labels, or its first and last row.
  void CountLabels(const Hdf5Array& array) {
    const int64_t rows = std::min(array.dims()[0], rows_);
    const int64_t per_row = array.count() / array.dims()[0];
    if (array.count() <= kMostLabels) {
      values_.resize(static_cast<size_t>(array.count()));
      array.Read(std::span<float>(values_));
      values_.resize(static_cast<size_t>(rows * per_row));
      AddLabels(array, 0, per_row);
      return;
    }
    whole_ = false;
    for (const int64_t row : {int64_t{0}, rows - 1}) {
      ReadRow(array, row, per_row);
      AddLabels(array, row, per_row);
    }
  }

  void AddLabels(const Hdf5Array& array, int64_t first_row, int64_t per_row) {
    for (size_t i = 0; i < values_.size(); ++i) {
      const auto where = [&] {
        return Join("row ", first_row + static_cast<int64_t>(i) / per_row, " of '", array.name(),
                    "' in ", array.file());
      };
      if (std::isnan(values_[i])) {
        Note(ErrorCode::kData, Join("the label in ", where(), " is NaN"));
      } else {
        labels_.Add(values_[i], where);
      }
    }
  }

  // Checks the first and the last row of the datasets that the net computes with.
  void CheckEnds(const Hdf5Array& array) {
    const int64_t rows = std::min(array.dims()[0], rows_);
    const int64_t per_row = array.count() / array.dims()[0];
    for (const int64_t row : {int64_t{0}, rows - 1}) {
      ReadRow(array, row, per_row);
      ++audit_.examined;
      const bool finite = std::ranges::all_of(values_, [](float v) { return std::isfinite(v); });
      if (finite) continue;
      Note(
          ErrorCode::kDiverged,
          Join(
              "row ", row, " of '", array.name(), "' in ", array.file(),
              " has values that are not finite (NaN or infinity), so the loss will not be finite"));
    }
  }

  void ReadRow(const Hdf5Array& array, int64_t row, int64_t per_row) {
    values_.resize(static_cast<size_t>(per_row));
    array.ReadRows(row, 1, values_);
  }

  void Note(ErrorCode code, const std::string& message) {
    NoteError(Error(code, {audit_.source}, EscapeControl(message)), limits_, &audit_);
  }

  const LayerSpec& layer_;
  std::span<const int> label_tops_;
  const AuditLimits& limits_;
  DataAudit& audit_;
  LabelStats labels_;
  bool whole_ = true;
  int64_t rows_ = 0;                                         // that the layer reads of a file
  int64_t rows_left_ = std::numeric_limits<int64_t>::max();  // of data_param.limit
  std::vector<float> values_;
};

}  // namespace

void AuditHdf5(const LayerSpec& layer, std::span<const int> label_tops, const AuditLimits& limits,
               DataAudit* audit) {
  Hdf5Audit(layer, label_tops, limits, audit).Run();
}

}  // namespace trainer

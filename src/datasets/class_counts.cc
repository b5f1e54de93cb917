#include "trainer/datasets/class_counts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <span>

#include "trainer/datasets/audit.h"
#include "trainer/input/image_list.h"
#include "trainer/input/input_files.h"
#include "trainer/input/record_labels.h"
#include "trainer/input/source.h"
#include "trainer/storage/limited_cursor.h"

namespace trainer {
namespace {

// Counts the labels of an HDF5Data layer; none if a dataset is too large to be read at once.
std::map<float, int64_t> CountHdf5Labels(const LayerSpec& layer, int top) {
  const int tops[] = {top};
  AuditLimits limits;
  limits.pictures = std::numeric_limits<int>::max();  // all files
  const DataAudit audit = AuditData(layer, caffe::TRAIN, tops, limits);
  std::map<float, int64_t> counts;
  if (!audit.all_labels) return counts;
  for (const auto& [label, seen] : audit.labels) counts[label] = seen.count;
  return counts;
}

}  // namespace

std::map<float, int64_t> CountLabels(const LayerSpec& layer, int top) {
  using Kind = InputFiles::Kind;
  std::map<float, int64_t> counts;
  const std::optional<InputFiles> files = InputFilesOf(layer);
  if (!files) return counts;
  const int64_t limit = layer.proto().data_param().limit();
  if (files->kind == Kind::kHdf5List) return CountHdf5Labels(layer, top);
  if (top != 1) return counts;
  if (files->kind == Kind::kDatabase || files->kind == Kind::kTar) {
    const std::unique_ptr<Cursor> cursor = LimitRecords(OpenLayersDatabase(layer), limit);
    for (const int32_t label : ReadLabels(*cursor)) {
      ++counts[static_cast<float>(label)];
    }
  } else if (files->kind == Kind::kImageList) {
    const ImageList list = ReadImages(files->path);
    if (list.label_count > 1) return counts;
    const size_t all = list.images.size();
    const size_t count = limit > 0 ? std::min(all, static_cast<size_t>(limit)) : all;
    for (const ListedImage& image : std::span(list.images).first(count)) {
      ++counts[list.labels.empty() ? static_cast<float>(image.label) : list.LabelsOf(image)[0]];
    }
  }
  return counts;
}

std::vector<float> InverseFrequencyWeights(std::span<const int64_t> counts, double power) {
  double records = 0, sum = 0;
  for (const int64_t count : counts) {
    if (count == 0) continue;
    records += static_cast<double>(count);
    sum += std::pow(static_cast<double>(count), 1 - power);
  }
  std::vector<float> weights;
  for (const int64_t count : counts) {
    const double weight =
        count == 0 ? 1 : records / sum * std::pow(static_cast<double>(count), -power);
    weights.push_back(static_cast<float>(weight));
  }
  return weights;
}

}  // namespace trainer

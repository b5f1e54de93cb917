#include "trainer/datasets/audit.h"

#include <algorithm>
#include <optional>

#include "audit_database.h"
#include "audit_hdf5.h"
#include "audit_lists.h"
#include "trainer/base/error/error_collector.h"
#include "trainer/config/named_file.h"
#include "trainer/input/image_list.h"
#include "trainer/input/input_files.h"
#include "trainer/input/source.h"
#include "trainer/input/window_list.h"
#include "trainer/storage/cursor.h"

namespace trainer {
namespace {

// Files of kHdf5List are opened by the audit.
void OpenFiles(const LayerSpec& layer, const InputFiles& files) {
  using Kind = InputFiles::Kind;
  const auto read = [&](const auto& reader) {
    ReadNamedFile(layer, files.param, "source", files.path, reader);
  };
  if (files.kind == Kind::kDatabase || files.kind == Kind::kTar) OpenLayersDatabase(layer);
  if (files.kind == Kind::kImageList) read(ReadImages);
  if (files.kind == Kind::kWindowList) read(ReadWindowList);
}

}  // namespace

int64_t DataAudit::EpochRecords() const {
  if (!balanced) return records;
  int64_t largest = 0;
  for (const auto& [label, seen] : labels) largest = std::max(largest, seen.count);
  return largest * static_cast<int64_t>(labels.size());
}

DataAudit AuditData(const LayerSpec& layer, caffe::Phase phase, std::span<const int> label_tops,
                    const AuditLimits& limits) {
  const std::optional<InputFiles> files = InputFilesOf(layer);
  DataAudit audit;
  if (!files) return audit;
  audit.source = files->path;
  audit.batch_size = files->batch_size;
  audit.balanced = files->balanced;
  switch (files->kind) {
    case InputFiles::Kind::kDatabase:
    case InputFiles::Kind::kTar:
      AuditDatabase(layer, phase, limits, &audit);
      break;
    case InputFiles::Kind::kHdf5List:
      AuditHdf5(layer, label_tops, limits, &audit);
      break;
    case InputFiles::Kind::kImageList:
      AuditImages(layer, phase, limits, &audit);
      break;
    case InputFiles::Kind::kWindowList:
      AuditWindows(layer, limits, &audit);
      break;
  }
  const int64_t limit = layer.proto().data_param().limit();
  if (limit > 0 && limit < audit.records) {
    audit.records = limit;
    audit.estimated = false;
  }
  return audit;
}

ErrorList OpeningErrors(const LayerSpec& layer, caffe::Phase phase) {
  ErrorCollector errors;
  const std::optional<InputFiles> files = InputFilesOf(layer);
  if (files) errors.Try([&] { OpenFiles(layer, *files); });
  errors.Try([&] { Transform(layer, phase, {}); });
  return errors.errors();
}

}  // namespace trainer

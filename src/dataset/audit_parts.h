#pragma once
// What the audits of all sources share.

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "trainer/data/datum.h"
#include "trainer/data/transform.h"
#include "trainer/dataset/audit.h"

namespace trainer {

// Keeps an error of a record, or counts it.
void NoteError(const Error& error, const AuditLimits& limits, DataAudit* audit);

// Counts labels in the order in which they are read.
class LabelCounter {
 public:
  explicit LabelCounter(DataAudit* audit) : audit_(*audit) {}
  void Add(float label, const std::function<std::string()>& where);
  // After the labels of all records, in reading order unless `shuffled`.
  void EndOfAll(bool shuffled);

 private:
  DataAudit& audit_;
  float last_ = 0;
  size_t runs_ = 0;
  int64_t seen_ = 0;
};

// Looks at single records through a transform.
class RecordAudit {
 public:
  RecordAudit(Transform transform, std::string source, bool labels, const AuditLimits& limits,
              DataAudit* audit)
      : transform_(std::move(transform)),
        source_(std::move(source)),
        labels_(labels),
        limits_(limits),
        audit_(*audit) {}

  const Transform& transform() const { return transform_; }
  BitDepth depth() const { return transform_.TakesFloats() ? BitDepth::kFloats : BitDepth::kBytes; }

  // Reads a record called `name` in messages; what is wrong with it goes to the audit. Returns
  // whether nothing is.
  bool Look(const std::string& name, const std::function<const DatumView&()>& read);

 private:
  void Check(const std::string& name, const DatumView& datum);

  Transform transform_;
  std::string source_;
  bool labels_;
  const AuditLimits& limits_;
  DataAudit& audit_;
  std::string first_;  // the record that gave the shape
  ImageShape shape_;
  std::vector<float> out_;
  std::set<std::string> field_errors_;  // the places of those that the audit has
};

struct ListedFile {
  std::string path;
  int line = 0;
};

// The numbers of those files of a list whose pictures are decoded.
std::vector<size_t> PicturesOf(const std::vector<ListedFile>& files, const AuditLimits& limits);

// Files that are not there are errors; beyond limits.files only some are looked for, spread over
// the list. Those of PicturesOf have been read already.
void LookForFiles(const std::string& list, const std::vector<ListedFile>& files,
                  const AuditLimits& limits, DataAudit* audit);

// `count` numbers, or fewer, from 0 to size - 1, both of these among them, rising.
std::vector<size_t> Spread(size_t size, size_t count);

DataAudit AuditDatabase(const LayerSpec& layer, caffe::Phase phase, const AuditLimits& limits);
DataAudit AuditImages(const LayerSpec& layer, caffe::Phase phase, const AuditLimits& limits);
DataAudit AuditWindows(const LayerSpec& layer, const AuditLimits& limits);
DataAudit AuditHdf5(const LayerSpec& layer, std::span<const int> label_tops,
                    const AuditLimits& limits);

}  // namespace trainer

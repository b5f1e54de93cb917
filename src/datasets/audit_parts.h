#pragma once
// Shared code of the audits of all sources.

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "trainer/datasets/audit.h"
#include "trainer/input/transform.h"
#include "trainer/storage/datum.h"

namespace trainer {

// Stores an error of a record, or counts it if enough are stored.
void NoteError(const Error& error, const AuditLimits& limits, DataAudit* audit);

// Counts labels in the order in which they are read.
class LabelStats {
 public:
  explicit LabelStats(DataAudit* audit) : audit_(*audit) {}
  void Add(float label, const std::function<std::string()>& where);
  // After the labels of all records, in reading order unless `shuffled`.
  void EndOfAll(bool shuffled);

 private:
  DataAudit& audit_;
  float last_ = 0;
  size_t runs_ = 0;
  int64_t seen_ = 0;
};

// Checks single records through a transform.
class RecordProbe {
 public:
  RecordProbe(Transform transform, std::string source, bool labels, const AuditLimits& limits,
              DataAudit* audit)
      : transform_(std::move(transform)),
        source_(std::move(source)),
        labels_(labels),
        limits_(limits),
        audit_(*audit) {}

  const Transform& transform() const { return transform_; }
  BitDepth depth() const { return transform_.TakesFloats() ? BitDepth::kFloats : BitDepth::kBytes; }

  // Reads a record and reports its errors. Returns whether it has none.
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
  size_t label_count_ = 0;  // of that record
  std::vector<float> out_;
  std::set<std::string> field_errors_;  // places of the field errors in the audit
};

struct ListedFile {
  std::string path;
  int line = 0;
};

// Indices of the files of a list whose images are decoded.
std::vector<size_t> PicturesOf(const std::vector<ListedFile>& files, const AuditLimits& limits);

// Reports missing files but those of PicturesOf; beyond limits.files of a sample, spread over all.
void LookForFiles(const std::string& list, const std::vector<ListedFile>& files,
                  const AuditLimits& limits, DataAudit* audit);

// Returns at most `count` rising numbers from 0 to size - 1, including both.
std::vector<size_t> Spread(size_t size, size_t count);

}  // namespace trainer

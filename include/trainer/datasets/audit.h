#pragma once
// Checks a sample of a data layer's records before training.

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "trainer/base/error/error_collector.h"
#include "trainer/config/layer_spec.h"

namespace trainer {

struct AuditLimits {
  uint64_t whole_bytes = 256 << 20;         // databases up to this size are read completely,
  uint64_t whole_encoded_bytes = 32 << 20;  // or this size if they hold encoded images
  int sample = 500;                         // else this many records, spread over the keys
  int64_t files = 20000;                    // files of a list that are looked for
  int pictures = 20;                        // images of a list that are decoded
  size_t errors = 5;                        // errors that are kept
};

struct LabelSeen {
  int64_t count = 0;
  std::string first;  // where: "record '00000012'", "line 7"
};

struct DataAudit {
  std::string source;  // the database or list; "" for a layer that reads neither
  int64_t batch_size = 0;
  int64_t records = 0;      // of the set; 0 if unknown
  bool estimated = false;   // `records` is estimated from the size of the files
  int64_t examined = 0;     // records that were read and decoded
  bool all_labels = false;  // `labels` covers all records
  std::map<float, LabelSeen> labels;
  bool sorted = false;  // the records of each label are read together
  // sampling: BALANCED. `labels` then covers all records, unless the limits allow no sample.
  bool balanced = false;
  ErrorList errors;         // the first errors of single records
  int64_t more_errors = 0;  // number of further errors
  // Records with the same error of a field as an earlier one, which `errors` has once.
  int64_t same_errors = 0;

  // Returns the number of records that an epoch has; 0 if unknown.
  int64_t EpochRecords() const;
};

// Reads the first, the last and more records of a data layer's source through its transform_param.
// `label_tops`: which outputs hold class labels. Throws as making the layer does.
DataAudit AuditData(const LayerSpec& layer, caffe::Phase phase, std::span<const int> label_tops,
                    const AuditLimits& limits = {});

// Lists why the files of such a layer cannot be opened: the source and the mean file.
ErrorList OpeningErrors(const LayerSpec& layer, caffe::Phase phase);

}  // namespace trainer

#pragma once
// What can be told of a data layer's records before training, without a pass over all of a large
// data set.

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "trainer/base/error/error_collector.h"
#include "trainer/config/layer_spec.h"

namespace trainer {

struct AuditLimits {
  uint64_t whole_bytes = 256 << 20;         // databases up to this size are read whole,
  uint64_t whole_encoded_bytes = 32 << 20;  // those of encoded pictures up to this one
  int sample = 500;                         // else so many records, spread over the keys
  int64_t files = 20000;                    // so many files of a list are looked for
  int pictures = 20;                        // so many pictures of a list are decoded
  size_t errors = 5;                        // so many errors are kept
};

struct LabelSeen {
  int64_t count = 0;
  std::string first;  // where: "record '00000012'", "line 7"
};

struct DataAudit {
  std::string source;  // the database or list; "" for a layer that reads neither
  int64_t batch_size = 0;
  int64_t records = 0;      // of an epoch; 0 where it is not known or there is no epoch
  bool estimated = false;   // whether `records` is a guess from the size of the files
  int64_t examined = 0;     // records that were read and decoded, the first and the last one too
  bool all_labels = false;  // whether `labels` are those of all records
  std::map<float, LabelSeen> labels;
  bool sorted = false;      // read in an order in which each label's records stand together
  ErrorList errors;         // what is wrong with single records: the first ones
  int64_t more_errors = 0;  // and how many there are beside these
  // Records for which a field of the layer has the same error as for an earlier record; `errors`
  // has it once.
  int64_t same_errors = 0;
};

// Looks at the first, the last and more records of the source that a Data, ImageData, HDF5Data or
// WindowData layer reads, through its transform_param. `label_tops`: which outputs hold class
// labels. Opens the source for itself and closes it. Throws as the layer's making does.
DataAudit AuditData(const LayerSpec& layer, caffe::Phase phase, std::span<const int> label_tops,
                    const AuditLimits& limits = {});

// What keeps the files of such a layer from being opened: the source and the mean, each for itself.
ErrorList OpeningErrors(const LayerSpec& layer, caffe::Phase phase);

}  // namespace trainer

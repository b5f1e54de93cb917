#include "trainer/datasets/mean.h"

#include <glog/logging.h>

#include "datum.pb.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/log/progress.h"
#include "trainer/base/text/text.h"
#include "trainer/storage/cursor.h"
#include "trainer/storage/datum.h"
#include "trainer/storage/record_scan.h"

namespace trainer {
namespace {

// The sums become means.
MeanResult Divide(const DatumView& shape, int64_t records, std::vector<double>* sums) {
  MeanResult result;
  result.records = records;
  result.shape = shape.ShapeText();
  const size_t plane = sums->size() / static_cast<size_t>(shape.channels);
  for (size_t c = 0; c < static_cast<size_t>(shape.channels); ++c) {
    double total = 0;
    for (size_t i = c * plane; i < (c + 1) * plane; ++i) {
      total += (*sums)[i] /= static_cast<double>(records);
    }
    result.values.push_back(static_cast<float>(total / static_cast<double>(plane)));
  }
  return result;
}

void WriteFile(const DatumView& shape, const std::vector<double>& means,
               const std::string& output) {
  caffe::BlobProto blob;
  blob.set_num(1);
  blob.set_channels(shape.channels);
  blob.set_height(shape.height);
  blob.set_width(shape.width);
  for (const double mean : means) blob.add_data(static_cast<float>(mean));
  WriteWhole(output, blob.SerializeAsString());
}

}  // namespace

MeanResult WriteMean(const std::string& set, const std::string& output) {
  RecordScan scan(set);
  DatumParser parser;
  DatumView shape;
  std::vector<double> sums;
  int64_t records = 0;
  std::string first_key;
  Progress progress(Join("Reading ", set), "records", scan.Count(), Progress::InLog::kNothing);
  for (StoredRecord record; scan.Next(&record);) {
    const DatumView& datum = parser.Parse(set, record.key, record.value);
    if (records == 0) {
      first_key = record.key;
      shape = datum;
      sums.resize(datum.bytes.empty() ? datum.floats.size() : datum.bytes.size());
    }
    if (datum.ShapeText() != shape.ShapeText()) {
      throw Error(ErrorCode::kData, {set},
                  Join("record ", QuoteKey(record.key), " is ", datum.ShapeText(), ", but record ",
                       QuoteKey(first_key), " is ", shape.ShapeText(),
                       "; a mean needs images of equal shape: resize the images"));
    }
    for (size_t i = 0; i < sums.size(); ++i) {
      sums[i] += datum.bytes.empty() ? static_cast<double>(datum.floats[i])
                                     : static_cast<uint8_t>(datum.bytes[i]);
    }
    progress.Add(1, record.value.size());
    if (++records % 10000 == 0) LOG(INFO) << "Processed " << records << " files.";
  }
  if (records == 0) throw Error(ErrorCode::kData, {set}, "the set has no records");
  const MeanResult result = Divide(shape, records, &sums);
  WriteFile(shape, sums, output);
  for (size_t c = 0; c < result.values.size(); ++c) {
    LOG(INFO) << "mean_value channel [" << c << "]: " << result.values[c];
  }
  return result;
}

}  // namespace trainer

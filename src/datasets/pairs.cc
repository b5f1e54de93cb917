#include "trainer/datasets/pairs.h"

#include <string>
#include <vector>

#include "trainer/base/error/error.h"
#include "trainer/base/log/progress.h"
#include "trainer/base/random/permutation.h"
#include "trainer/base/text/text.h"
#include "trainer/storage/cursor.h"
#include "trainer/storage/database_writer.h"
#include "trainer/storage/datum.h"
#include "trainer/storage/record_scan.h"

namespace trainer {
namespace {

constexpr uint32_t kPairsStream = 0x9a125000;

struct Labelled {
  std::string pixels;
  int32_t label;
};

// Reads all images of a set, which must have one shape.
std::vector<Labelled> ReadPairImages(const std::string& set, DatumView* shape) {
  RecordScan scan(set);
  DatumParser parser;
  Progress progress(Join("Reading ", set), "images", scan.Count());
  std::vector<Labelled> images;
  for (StoredRecord record; scan.Next(&record);) {
    const DatumView& datum = parser.Parse(set, record.key, record.value);
    if (images.empty()) *shape = datum;
    std::string problem;
    if (datum.bytes.empty()) problem = "has float values; pairs need images in bytes";
    if (!datum.has_label)
      problem = "has no label, but pairs need the label to know which images are alike";
    if (!datum.labels.empty())
      problem = "has several labels, but pairs need one integer to know which images are alike";
    if (datum.ShapeText() != shape->ShapeText()) {
      problem = Join("is ", datum.ShapeText(), ", but the first record is ", shape->ShapeText());
    }
    if (!problem.empty()) {
      throw Error(ErrorCode::kData, {set}, Join("record ", QuoteKey(record.key), " ", problem));
    }
    images.push_back({std::string(datum.bytes), datum.label});
    progress.Add(1, datum.bytes.size());
  }
  if (images.empty()) throw Error(ErrorCode::kData, {set}, "the set has no records");
  return images;
}

}  // namespace

int64_t WritePairs(const std::string& set, const std::string& pairs, const std::string& backend,
                   uint64_t seed) {
  DatumView shape;
  const std::vector<Labelled> images = ReadPairImages(set, &shape);
  DatabaseWriter output(backend, pairs);
  caffe::Datum pair = EmptyDatum(2 * shape.channels, shape.height, shape.width);
  const PhiloxKey key{seed, kPairsStream};
  Progress progress(Join("Writing ", pairs), "pairs", static_cast<int64_t>(images.size()));
  for (uint64_t i = 0; i < images.size(); ++i) {
    const Philox4 words = PhiloxBlock(key, 0, i);
    const Labelled& first = images[UniformBelow(words.x[0], images.size())];
    const Labelled& second = images[UniformBelow(words.x[1], images.size())];
    pair.set_data(first.pixels + second.pixels);
    pair.set_label(first.label == second.label ? 1 : 0);
    output.Put(pair);
    progress.Add(1);
  }
  output.Finish();
  return output.records();
}

}  // namespace trainer

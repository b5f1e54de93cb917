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

// All images of a set, which must be of one size.
class Images {
 public:
  explicit Images(const std::string& set) {
    RecordScan scan(set);
    DatumParser parser;
    Progress progress(Join("Reading ", set), "images", scan.Count());
    for (StoredRecord record; scan.Next(&record);) {
      const DatumView& datum = parser.Parse(set, record.key, record.value);
      if (all_.empty()) {
        channels_ = datum.channels;
        height_ = datum.height;
        width_ = datum.width;
        shape_ = datum.ShapeText();
      }
      Check(datum, set, record.key);
      all_.push_back({std::string(datum.bytes), datum.label});
      progress.Add(1, datum.bytes.size());
    }
    if (all_.empty()) throw Error(ErrorCode::kData, {set}, "the set has no records");
  }

  int64_t count() const { return static_cast<int64_t>(all_.size()); }
  // An image by 32 random bits.
  const Labelled& Pick(uint32_t word) const { return all_[UniformBelow(word, all_.size())]; }
  // A datum of two such images, without them.
  caffe::Datum EmptyPair() const {
    caffe::Datum pair;
    pair.set_channels(2 * channels_);
    pair.set_height(height_);
    pair.set_width(width_);
    return pair;
  }

 private:
  void Check(const DatumView& datum, const std::string& set, const std::string& key) const {
    std::string problem;
    if (datum.bytes.empty()) problem = "has float values; pairs need images in bytes";
    if (!datum.has_label)
      problem = "has no label, but pairs need the label to know which images are alike";
    if (datum.ShapeText() != shape_) {
      problem = Join("is ", datum.ShapeText(), ", but the first record is ", shape_);
    }
    if (problem.empty()) return;
    throw Error(ErrorCode::kData, {set}, Join("record ", QuoteKey(key), " ", problem));
  }

  std::vector<Labelled> all_;
  int32_t channels_ = 0, height_ = 0, width_ = 0;
  std::string shape_;
};

}  // namespace

int64_t WritePairs(const std::string& set, const std::string& pairs, const std::string& backend,
                   uint64_t seed) {
  const Images images(set);
  DatabaseWriter output(backend, pairs);
  caffe::Datum pair = images.EmptyPair();
  const PhiloxKey key{seed, kPairsStream};
  Progress progress(Join("Writing ", pairs), "pairs", images.count());
  for (int64_t i = 0; i < images.count(); ++i) {
    const Philox4 words = PhiloxBlock(key, 0, static_cast<uint64_t>(i));
    const Labelled& first = images.Pick(words.x[0]);
    const Labelled& second = images.Pick(words.x[1]);
    pair.set_data(first.pixels + second.pixels);
    pair.set_label(first.label == second.label ? 1 : 0);
    output.Put(pair);
    progress.Add(1);
  }
  output.Finish();
  return output.records();
}

}  // namespace trainer

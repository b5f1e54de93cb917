#include "trainer/input/record_sampler.h"

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/storage/cursor.h"

namespace trainer {

void Record::Own() {
  owned_.assign(key);
  owned_.append(value);
  const std::string_view owned = owned_;
  value = owned.substr(key.size());
  key = owned.substr(0, key.size());
}

std::string RecordSampler::Describe() { return Join("record ", QuoteKey(Key()), " of ", path()); }

void RecordSampler::FailSeek(const Position& position) const {
  throw Error(ErrorCode::kBadSnapshot, {path()},
              Join("the snapshot stopped before record ", QuoteKey(position.key),
                   ", which is not in this data set; use the data set of that run"));
}

}  // namespace trainer

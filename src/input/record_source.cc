#include "trainer/input/record_source.h"

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/storage/cursor.h"

namespace trainer {

void Record::Keep() {
  kept_.assign(key);
  kept_.append(value);
  const std::string_view kept = kept_;
  value = kept.substr(key.size());
  key = kept.substr(0, key.size());
}

std::string RecordSource::Name() const { return Join("record ", QuoteKey(Key()), " of ", path()); }

void RecordSource::FailSeek(const Position& position) const {
  throw Error(ErrorCode::kBadSnapshot, {path()},
              Join("the snapshot stopped before record ", QuoteKey(position.key),
                   ", which is not in this data set; use the data set of that run"));
}

}  // namespace trainer

#include "trainer/input/record_labels.h"

#include <glog/logging.h>

#include <optional>

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"

namespace trainer {

std::vector<int32_t> ReadLabels(Cursor& cursor, RecordKeys* keys) {
  LOG(INFO) << EscapeControl(cursor.path()) << ": reading the label of every record";
  std::vector<int32_t> labels;
  cursor.SeekFirst();
  do {
    const std::optional<int32_t> label = cursor.Label();
    if (!label) {
      throw Error(
          ErrorCode::kData, {cursor.path()},
          Join("record ", QuoteKey(cursor.Key()),
               " has no label that is an integer, so its class is unknown; label the records, or "
               "remove what asks for classes: sampling: BALANCED, class_weight_power"));
    }
    labels.push_back(*label);
    if (keys != nullptr) keys->Add(cursor.Key());
  } while (!cursor.Next());
  return labels;
}

}  // namespace trainer

#include "trainer/base/error.h"

#include "trainer/base/text.h"

namespace trainer {

std::string SourceRef::ToString() const {
  if (file.empty()) return "";
  std::string text = file;
  if (line > 0) text += Join(":", line);
  if (line > 0 && column > 0) text += Join(":", column);
  return text;
}

Error::Error(ErrorCode code, const SourceRef& place, const std::string& message)
    : std::runtime_error(
          EscapeControl(place.file.empty() ? message : place.ToString() + ": " + message)),
      code_(code) {}

}  // namespace trainer
